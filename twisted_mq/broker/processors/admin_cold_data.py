"""Thresholds for reads of cold data: codes 2001, 2002, 2003 (Apache: AdminBrokerProcessor)."""

from __future__ import annotations

from twisted_mq.broker.cold_reads import ColdReads
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.properties import parse_properties
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.text.fastjson import dumps
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel


class AdminColdDataProcessor:
    """Sets, drops and shows them."""

    def __init__(self, reads: ColdReads) -> None:
        self._reads = reads
        self.processors = {
            RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: self.update,
            RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: self.remove,
            RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: self.info,
        }

    def update(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Set what groups may read in a period, as lines of group=bytes, all or none. Apache's passes bad ones over."""
        try:
            entries = [(entry.key, int(entry.value)) for entry in parse_properties(command.body)]
        except (ConfigError, ValueError) as error:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, f"threshold: {error}") from error
        for group, threshold in entries:
            self._reads.set_threshold(group, threshold)
        return command.answer()

    def remove(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Have a group read as all others may; one without a threshold of its own stays so."""
        self._reads.thresholds.pop(command.body.decode(errors="replace"), None)
        return command.answer()

    def info(self, channel: Channel, command: RemotingCommand) -> Answer:
        """The thresholds, and what was read since the period began."""
        return command.answer(body=dumps(self._reads.figures()))
