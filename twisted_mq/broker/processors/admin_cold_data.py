"""Limits reads of cold data by thresholds, and sets how the kernel reads the log: codes 2001 to 2004 (Apache:
AdminBrokerProcessor).
"""

from __future__ import annotations

from typing import Protocol

from twisted_mq.broker.clients.client_names import MOST_GROUP_NAME, check_name
from twisted_mq.broker.cold_reads import ColdReads
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.properties import parse_request
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.text.fastjson import dumps
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel

READ_AHEAD_MODE = "READ_AHEAD_MODE"
"""The field with the mode (Apache: FIleReadaheadMode)."""
AHEAD, AT_RANDOM = 0, 1
"""MADV_NORMAL, MADV_RANDOM."""


class AdminColdDataParts(Protocol):
    """The parts of the broker that limits of cold reads use."""

    cold_reads: ColdReads
    options: BrokerOptions

    def configure_store(self) -> None:
        """Give the changed settings to the store."""


class AdminColdDataProcessor:
    """Sets, removes and shows the thresholds of cold reads, and sets the kernel's read mode."""

    def __init__(self, broker: AdminColdDataParts) -> None:
        self._reads = broker.cold_reads
        self._options = broker.options
        self._configure = broker.configure_store
        self.processors = {
            RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: self.update,
            RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: self.remove,
            RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: self.info,
            RequestCode.SET_COMMITLOG_READ_MODE: self.read_mode,
        }

    def update(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Set how many bytes groups may read in a period, as lines of group=bytes, all or none. Apache's broker skips bad
        lines.
        """
        try:
            entries = [(entry.key, int(entry.value)) for entry in parse_request(command.body)]
        except (ConfigError, ValueError) as error:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, f"threshold: {error}") from error
        for group, _ in entries:
            check_name("group", group, MOST_GROUP_NAME)
        for group, threshold in entries:
            self._reads.set_threshold(group, threshold)
        return command.answer()

    def remove(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Remove a group's own threshold, so that the common one applies. A group without one stays as it is."""
        self._reads.thresholds.pop(command.body.decode(errors="replace"), None)
        return command.answer()

    def info(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the thresholds, and what was read since the period began."""
        return command.answer(body=dumps(self._reads.figures()))

    def read_mode(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Have the kernel read the log ahead, or only the pages that are accessed, until the broker stops."""
        if not command.ext_fields:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode param error")
        mode = parse_int(command.ext_fields.get(READ_AHEAD_MODE))
        if mode is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode failed")
        if mode not in (AHEAD, AT_RANDOM):
            raise BrokerError(ResponseCode.INVALID_PARAMETER, "set commitlog readahead mode param value error")
        self._options.data_read_ahead_enable = mode == AHEAD
        self._configure()
        return command.answer(remark=f"set commitlog readahead mode success, mode: {mode}")
