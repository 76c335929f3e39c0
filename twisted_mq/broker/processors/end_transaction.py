"""Ends transactions (37, END_TRANSACTION), and lets a half message that was given up be checked again (323).

Apache: EndTransactionProcessor, AdminBrokerProcessor.resumeCheckHalfMessage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.transaction.half_messages import has_immunity, immunity_ms
from twisted_mq.broker.transaction.members import MemberParts, TransactionMembers
from twisted_mq.broker.transaction.transaction_service import TransactionService
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import EndTransactionRequestHeader, ResumeCheckHalfMessageRequestHeader
from twisted_mq.protocol.layouts.message_id import decode_offset_message_id
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.protocol.text.properties import PROPERTY_PRODUCER_GROUP, PROPERTY_REAL_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, fast_header
from twisted_mq.remoting.channel import Answer, Channel


class EndParts(MemberParts, Protocol):
    """The parts of the broker that EndTransactionProcessor uses."""

    wall_ms: Callable[[], int]
    transactions: TransactionService
    durability: Durability
    statistics: BrokerStatistics


class EndTransactionProcessor:
    """Commits or rolls back half messages. Producers read the answer only if the request was not one-way."""

    log = Logger()

    def __init__(self, broker: EndParts) -> None:
        self._broker = broker
        self._options = broker.options
        self._wall_ms = broker.wall_ms
        self._transactions = broker.transactions
        self._durability = broker.durability
        self._statistics = broker.statistics
        self._members = TransactionMembers(broker)
        self._read = fast_header(EndTransactionRequestHeader)
        self.processors = {
            RequestCode.END_TRANSACTION: self.end_transaction,
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume_check_half_message,
        }

    def end_transaction(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Commit or roll back. If the producer does not know the outcome, do nothing and do not answer."""
        header = self._read(command)
        if self._options.is_slave:
            raise BrokerError(ResponseCode.SLAVE_NOT_AVAILABLE, "end transactions at the master, not at a slave")
        if header.commit_or_rollback == MessageSysFlag.TRANSACTION_NOT_TYPE:
            self.log.info(
                "transaction still undecided: peer={peer} group={group} key={key} check={check}",
                peer=channel.address, group=header.producer_group, key=header.msg_id, check=header.from_transaction_check,
            )  # fmt: skip
            return None
        transactions = self._transactions
        half = transactions.find(header.commit_log_offset)
        self._check_identity(header, half)
        self._members.check(channel, command, half)
        self._check_time(header, half)
        topic = half.properties.get(PROPERTY_REAL_TOPIC, "")
        if header.commit_or_rollback == MessageSysFlag.TRANSACTION_COMMIT_TYPE:
            transactions.commit(half)
            self._statistics.committed[topic].record((self._wall_ms() - half.head.born_timestamp) // 1000)
        else:
            transactions.roll_back(half)
            self._statistics.rolled_back[topic] += 1
        return self._durability.acknowledged(command.answer())

    def _check_time(self, header: EndTransactionRequestHeader, half: StoredMessage) -> None:
        """Check that a message with its own immunity time is decided within it, or by the answer to a check."""
        if header.from_transaction_check or not has_immunity(half):
            return
        timeout = self._options.transaction_time_out
        limit = max(timeout, immunity_ms(half, timeout))
        if self._wall_ms() - half.head.born_timestamp > limit:
            remark = f"the transaction is older than {limit} ms, the broker's check will decide it"
            raise BrokerError(ResponseCode.ILLEGAL_OPERATION, remark)

    @staticmethod
    def _check_identity(header: EndTransactionRequestHeader, half: StoredMessage) -> None:
        if half.properties.get(PROPERTY_PRODUCER_GROUP) != header.producer_group:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
        if half.head.queue_offset != header.tran_state_table_offset:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
        if half.head.physical_offset != header.commit_log_offset:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")

    def resume_check_half_message(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Have a half message checked again; its offset id says where it is."""
        header = decode_header(ResumeCheckHalfMessageRequestHeader, command)
        try:
            offset = decode_offset_message_id(header.msg_id or "")[2]
        except ProtocolError as error:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"msgId {header.msg_id!r} is not an offset id") from error
        half = self._transactions.given_up(offset)
        if self._options.record_rights_enable:
            topic = half.properties.get(PROPERTY_REAL_TOPIC, "")
            self._broker.access.check_topic(channel, command, (Action.UPDATE,), topic)
        self._transactions.resume(half)
        return self._durability.acknowledged(command.answer())
