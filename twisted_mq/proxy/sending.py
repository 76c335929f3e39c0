"""SendMessage, EndTransaction, RecallMessage, and the places of open transactions."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import attrs
from twisted.internet.task import deferLater

from twisted_mq.protocol.bodies import TopicRouteData
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, RocketMQError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import (
    EndTransactionRequestHeader,
    RecallMessageRequestHeader,
    RecallMessageResponseHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from twisted_mq.protocol.layouts.message_id import decode_offset_message_id
from twisted_mq.protocol.names.recall_handle import RecallHandle
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_SHARDING_KEY, encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, fast_header
from twisted_mq.proxy.brokers import Brokers
from twisted_mq.proxy.checks import PARTS_OF_SLICE, check_count, check_message, checked_topic
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.conversion import Outgoing, outgoing
from twisted_mq.proxy.messages import (
    EndTransactionResponse,
    RecallMessageResponse,
    SendMessageResponse,
    SendResultEntry,
    TransactionResolution,
    TransactionSource,
)
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.queues import MIXED, Turn, consistent_hash, writable
from twisted_mq.proxy.requests import make_request, succeeded
from twisted_mq.proxy.statuses import ProxyError, common_status, ok, status, status_of

STORED = {
    ResponseCode.SUCCESS: "OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "MASTER_PERSISTENCE_TIMEOUT",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "SLAVE_PERSISTENCE_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "HA_NOT_AVAILABLE",
}
"""The response codes of a broker that has stored a message -> the status for the client."""
RESOLUTIONS = {
    TransactionResolution.Value("COMMIT"): MessageSysFlag.TRANSACTION_COMMIT_TYPE,
    TransactionResolution.Value("ROLLBACK"): MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
}
SERVER_CHECK = TransactionSource.Value("SOURCE_SERVER_CHECK")
DEFAULT_QUEUES = 4
MOST_TRANSACTIONS = 100_000
MOST_ROUTES = 10_000
"""The limit of topics whose queues are kept, in addition to their routes."""


@attrs.frozen
class TransactionPlace:
    """The place of a half message. `known_until` is in seconds of the clock."""

    broker_name: str
    queue_offset: int
    physical_offset: int
    known_until: float


class Transactions:
    """The places of open transactions, each kept for transactionDataExpireMillis. Past the limit, the oldest is forgotten.

    A place belongs to the client that sent the half message, and to one that was asked about it.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._places: OrderedDict[tuple[str, str, str], TransactionPlace] = OrderedDict()

    def remember(
        self,
        client_id: str,
        topic: str,
        transaction_id: str,
        broker_name: str,
        queue_offset: int,
        physical_offset: int,
    ) -> None:
        """Remember the place of a half message that was stored, or that its producer is being asked about."""
        now = self._parts.clock.seconds()
        until = now + self._parts.options.transaction_data_expire_millis / 1000
        key = client_id, topic, transaction_id
        self._places.pop(key, None)
        self._places[key] = TransactionPlace(broker_name, queue_offset, physical_offset, until)
        while self._places:
            oldest = next(iter(self._places))
            if self._places[oldest].known_until >= now and len(self._places) <= MOST_TRANSACTIONS:
                break
            del self._places[oldest]

    def forget(self, client_id: str, topic: str, transaction_id: str) -> None:
        """Forget a transaction that has ended."""
        self._places.pop((client_id, topic, transaction_id), None)

    def find(self, client_id: str, topic: str, transaction_id: str) -> TransactionPlace:
        """Return the place of a client's transaction. Raises ProxyError if it is unknown or expired."""
        place = self._places.get((client_id, topic, transaction_id))
        if place is None or place.known_until < self._parts.clock.seconds():
            raise ProxyError(
                "INTERNAL_SERVER_ERROR",
                f"transaction {transaction_id} of topic {topic} is not known here, or no longer",
            )
        return place


class Sending:
    """Handles the calls of producers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._brokers: Brokers = parts.brokers
        self._options: ProxyOptions = parts.options
        self.turn = Turn()
        self._queues: dict[str, tuple[TopicRouteData, list[tuple[str, int]]]] = {}
        self.transactions = Transactions(parts)

    async def send(self, client: GrpcClient, request: Any) -> Any:
        """Handle SendMessage: send one message, or several of one topic as a batch."""
        parts, messages = self._parts, request.messages
        if not messages:
            raise ProxyError("MESSAGE_CORRUPTED", "no message to send")
        check_count("messages", len(messages))
        topic = checked_topic(messages[0].topic)
        if len(messages) > 1 and any(one.topic.name != topic for one in messages):
            raise ProxyError("MESSAGE_CORRUPTED", "all messages of a call must have the same topic")
        now_ms = parts.now_ms()
        for message in messages:
            check_message(message, self._options, parts.max_body_bytes, now_ms)
        host = client.remote_address[0]
        sent = [outgoing(one, topic, host, now_ms, parts.max_body_bytes) for one in messages]
        if self._options.enable_topic_message_type_check:
            await self._check_type(topic, sent)
        queues = self._writable(topic, await self._brokers.route(topic))
        if not queues:
            raise ProxyError("FORBIDDEN", f"topic {topic} has no writable queue")
        if len(sent) > 1:
            return await self._send_batch(client, topic, queues, sent)
        broker_name, queue_id = self._queue(queues, sent[0])
        answer = await self._put(client, topic, broker_name, queue_id, sent[0])
        response = SendMessageResponse()
        entry = response.entries.add()
        self._fill(entry, client, topic, broker_name, sent[0], answer)
        response.status.CopyFrom(entry.status)
        return response

    def _writable(self, topic: str, route: TopicRouteData) -> list[tuple[str, int]]:
        """Return the queues of a topic that take messages, as long as its route is the same."""
        known = self._queues.get(topic)
        if known is None or known[0] is not route:
            if len(self._queues) >= MOST_ROUTES:
                self._queues.clear()
            served = [one for one in writable(route) if self._brokers.serves(one[0])]
            known = self._queues[topic] = route, served
        return known[1]

    async def _check_type(self, topic: str, sent: list[Outgoing]) -> None:
        wanted = await self._brokers.message_type(topic)
        if wanted in (MIXED, "UNSPECIFIED"):
            return
        for one in sent:
            if one.type != wanted:
                raise ProxyError(
                    "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
                    f"topic {topic} accepts messages of type {wanted}, not {one.type}",
                )

    def _queue(self, queues: list[tuple[str, int]], sent: Outgoing) -> tuple[str, int]:
        """Return the queue of a message: a message group has one queue, other messages take the queues in turn."""
        group = sent.properties.get(PROPERTY_SHARDING_KEY)
        if group is not None:
            return queues[consistent_hash(group, len(queues))]
        return queues[self.turn.take() % len(queues)]

    async def _put(
        self, client: GrpcClient, topic: str, broker_name: str, queue_id: int, sent: Outgoing
    ) -> RemotingCommand:
        header = SendMessageRequestHeaderV2(
            producer_group=topic,
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=DEFAULT_QUEUES,
            queue_id=queue_id,
            sys_flag=sent.sys_flag,
            born_timestamp=sent.born_timestamp,
            flag=0,
            properties=encode_properties(sent.properties),
            reconsume_times=0,
            unit_mode=False,
            batch=False,
            broker_name=broker_name,
        )
        command = make_request(RequestCode.SEND_MESSAGE_V2, header, sent.body)
        return await self._brokers.ask(client, broker_name, command)

    async def _send_batch(
        self, client: GrpcClient, topic: str, queues: list[tuple[str, int]], sent: list[Outgoing]
    ) -> Any:
        """Send messages one after the other to one queue.

        Each has an entry and a type of its own; Apache's batch has one type for all.
        """
        broker_name, queue_id = queues[self.turn.take() % len(queues)]
        entries = []
        for number, one in enumerate(sent, 1):
            if not number % PARTS_OF_SLICE:
                await deferLater(self._parts.clock, 0)
            try:
                answer = await self._put(client, topic, broker_name, queue_id, one)
                entry = SendResultEntry()
                self._fill(entry, client, topic, broker_name, one, answer)
                entries.append(entry)
            except RocketMQError as error:
                entries.append(SendResultEntry(status=status_of(error)))
        common = common_status(entry.status for entry in entries)
        return SendMessageResponse(status=common, entries=entries)

    def _fill(
        self, entry: Any, client: GrpcClient, topic: str, broker_name: str, sent: Outgoing, answer: RemotingCommand
    ) -> None:
        """Set what an entry says of a message that a broker has answered. Raises BrokerError if it is not stored."""
        name = STORED.get(ResponseCode(answer.code)) if answer.code in _STORED_CODES else None
        if name is None:
            raise BrokerError(answer.code, answer.remark or "")
        if name != "OK":
            entry.status.CopyFrom(status(name, answer.remark or ""))
            return
        header = _answered(answer)
        entry.status.CopyFrom(ok())
        entry.message_id = sent.properties["UNIQ_KEY"]
        entry.offset = header.queue_offset
        if header.transaction_id:
            entry.transaction_id = header.transaction_id
        if header.recall_handle:
            entry.recall_handle = header.recall_handle
        if sent.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE:
            entry.transaction_id = entry.transaction_id or entry.message_id
            _, _, physical_offset = decode_offset_message_id(header.msg_id)
            self.transactions.remember(
                client.client_id, topic, entry.transaction_id, broker_name, header.queue_offset, physical_offset
            )

    async def end_transaction(self, client: GrpcClient, request: Any) -> Any:
        """Handle EndTransaction: commit or roll back."""
        topic, transaction_id = checked_topic(request.topic), request.transaction_id
        if not transaction_id.strip():
            raise ProxyError("INVALID_TRANSACTION_ID", "transaction_id is blank")
        place = self.transactions.find(client.client_id, topic, transaction_id)
        header = EndTransactionRequestHeader(
            topic=topic,
            producer_group=topic,
            tran_state_table_offset=place.queue_offset,
            commit_log_offset=place.physical_offset,
            commit_or_rollback=RESOLUTIONS.get(request.resolution, MessageSysFlag.TRANSACTION_NOT_TYPE),
            from_transaction_check=request.source == SERVER_CHECK,
            msg_id=request.message_id,
            transaction_id=transaction_id,
        )
        command = make_request(RequestCode.END_TRANSACTION, header)
        answer = await self._brokers.ask(client, place.broker_name, command)
        succeeded(answer)
        self.transactions.forget(client.client_id, topic, transaction_id)
        return EndTransactionResponse(status=ok())

    async def recall(self, client: GrpcClient, request: Any) -> Any:
        """Handle RecallMessage: recall a message that waits for its delivery time."""
        topic = checked_topic(request.topic)
        wanted = await self._brokers.message_type(topic)
        if self._options.enable_topic_message_type_check and wanted not in ("DELAY", MIXED):
            raise ProxyError(
                "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
                f"topic {topic} has messages of type {wanted}, which cannot be delayed",
            )
        try:
            handle = RecallHandle.decode(request.recall_handle)
        except ValueError as error:
            raise ProxyError("BAD_REQUEST", str(error)) from None
        names = {one.broker_name for one in (await self._brokers.route(topic)).broker_datas}
        if handle.broker_name not in names:
            raise ProxyError(
                "BAD_REQUEST", f"recall_handle names broker {handle.broker_name}, which does not serve topic {topic}"
            )
        header = RecallMessageRequestHeader(producer_group=topic, topic=topic, recall_handle=request.recall_handle)
        command = make_request(RequestCode.RECALL_MESSAGE, header)
        answer = await self._brokers.ask(client, handle.broker_name, command)
        succeeded(answer)
        return RecallMessageResponse(status=ok(), message_id=decode_header(RecallMessageResponseHeader, answer).msg_id)


_answered = fast_header(SendMessageResponseHeader)
_STORED_CODES = frozenset(int(code) for code in STORED)
