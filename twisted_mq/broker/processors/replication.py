"""Tells slaves and operators about replication: codes 45, 60, 61, 402 (a slave's copies of tables), 905, 906 and 907.

Apache: the parts of AdminBrokerProcessor and QueryAssignmentProcessor that SlaveSynchronize and haStatus use.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.waiting_messages import WaitingMessages
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DelayOffsetSerializeWrapper, MessageRequestModeSerializeWrapper, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
    NotifyMinBrokerIdChangeRequestHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.tables.escaped_table import DelayOffsetsOfSlave


class ReplicationParts(Protocol):
    """The parts of the broker that answers to slaves use."""

    options: BrokerOptions
    waiting: WaitingMessages
    tables: BrokerTables
    ha: HAService

    @property
    def address(self) -> str: ...


class ReplicationProcessor:
    """Hands out the state of replication, and the tables that no other processor hands out whole."""

    log = Logger()

    def __init__(self, broker: ReplicationParts) -> None:
        self._options = broker.options
        self._waiting = broker.waiting
        self._modes = broker.tables.request_modes
        self._ha = broker.ha
        self._address = broker.address
        self.processors = {
            RequestCode.GET_ALL_DELAY_OFFSET: self.delay_offsets,
            RequestCode.GET_TIMER_CHECK_POINT: self.timer_checkpoint,
            RequestCode.GET_TIMER_METRICS: self.timer_metrics,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self.request_modes,
            RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: self.group_changed,
            RequestCode.EXCHANGE_BROKER_HA_INFO: self.ha_info,
            RequestCode.GET_BROKER_HA_STATUS: self.ha_status,
        }

    def delay_offsets(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the offset up to which each delay level was delivered; in the mode of acting masters what others took, too."""
        if self._options.enable_slave_acting_master:
            return defer.ensureDeferred(self._with_escaped(command))
        return command.answer(body=encode_body(DelayOffsetSerializeWrapper(*self._waiting.delay_offsets())))

    async def _with_escaped(self, command: RemotingCommand) -> RemotingCommand:
        escaped = await self._waiting.escaped_so_far()
        return command.answer(body=encode_body(DelayOffsetsOfSlave(*self._waiting.delay_offsets(), escaped)))

    def timer_checkpoint(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the timer's check point, 56 bytes as in its file. Apache's returning master asks the slaves of the mode, too."""
        if not (self._options.is_slave and self._options.enable_slave_acting_master):
            self._check_timer("The checkpoint is null")
        return command.answer(body=self._waiting.timer_checkpoint().encode())

    def timer_metrics(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return how many messages of each topic wait for their time."""
        self._check_timer("The timer message store is null")
        return command.answer(body=encode_body(self._waiting.timer.progress().metrics))

    def _check_timer(self, remark: str) -> None:
        if not self._options.timer_wheel_enable or self._options.is_slave:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)

    def request_modes(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return how groups consume: by pull or by pop."""
        return command.answer(body=encode_body(MessageRequestModeSerializeWrapper(self._modes.modes)))

    def group_changed(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Ask the name servers for the members of the group. The notice itself is not trusted."""
        decode_header(NotifyMinBrokerIdChangeRequestHeader, command)
        self._ha.group_changed()
        return command.answer()

    def ha_info(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return a master's addresses. A slave learns its master's address from the name servers.

        Apache's masters send theirs before they register where slaves act for them (enableSlaveActingMaster). A slave of
        that mode that knows no master yet takes it from the master's own host: else an Apache master would wait forever.
        """
        header = decode_header(ExchangeHAInfoRequestHeader, command)
        if header.master_ha_address is not None:
            if self._options.enable_slave_acting_master and self._ha.told_master(header.master_ha_address, channel):
                return command.answer()
            self.log.warn(
                "address of a master ignored: address={address} peer={peer}",
                address=header.master_ha_address,
                peer=channel.address,
            )
            return command.answer()
        if self._options.broker_id:
            return command.answer()
        answer = ExchangeHAInfoResponseHeader(
            master_ha_address=self._ha.address, master_flush_offset=0, master_address=self._address
        )
        return command.answer(ext_fields=encode_header(answer))

    def ha_status(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the master's slaves, or the slave's master."""
        return command.answer(body=encode_body(self._ha.runtime_info()))
