"""The calls of consumers: ReceiveMessage, AckMessage, ChangeInvisibleDuration, ForwardMessageToDeadLetterQueue."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import attrs
from twisted.internet import defer
from twisted.internet.task import deferLater

from twisted_mq.client.core.pop_result import PopStatus, pop_result
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies.pop import MOST_POPPED
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import ProtocolError, RocketMQError
from twisted_mq.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    ConsumerSendMsgBackRequestHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import selects
from twisted_mq.protocol.names.pop_receipt import Receipt, full_receipt, offset_count_key, parse_order_counts
from twisted_mq.protocol.text.properties import PROPERTY_POP_CK, PROPERTY_TAGS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.proxy.brokers import CALL_SECONDS
from twisted_mq.proxy.checks import (
    PARTS_OF_SLICE,
    check_changed_invisible,
    check_count,
    check_received_invisible,
    checked_group,
    checked_topic,
)
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.conversion import hand_out
from twisted_mq.proxy.filters import subscription_of
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.handles import UNKNOWN_OFFSET, Handle, handle_text, live_handle, parse_handle
from twisted_mq.proxy.messages import (
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationResponse,
    ForwardMessageToDeadLetterQueueResponse,
    ReceiveMessageResponse,
)
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.queues import readable
from twisted_mq.proxy.renewal import Renewal
from twisted_mq.proxy.requests import make_request, succeeded
from twisted_mq.proxy.settings import max_attempts
from twisted_mq.proxy.statuses import ProxyError, common_status, ok, status, status_of
from twisted_mq.proxy.times import milliseconds, timestamp

ANY_QUEUE = -1
FROM_THE_END = 1
"""The initMode of a pop: a new group begins after the last message (Apache: ConsumeInitMode.MAX)."""
RESERVE_MS = 100
"""The time in ms between the end of a poll and the call's deadline (Apache: longPollingReserveTimeInMillis)."""
DEFAULT_REQUEST_MS = 3000

Settled = TypeVar("Settled")


@attrs.frozen
class Received:
    """A message of a pop. `text` is its handle as the client gets it."""

    message: MessageExt
    text: str

    @property
    def handle(self) -> Handle:
        return parse_handle(self.text)


class Receiving:
    """Handles the calls of consumers."""

    log = Logger()

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._brokers = parts.brokers
        self._turn = itertools.count()
        self.renewal = Renewal(parts, self.change)

    # ReceiveMessage

    async def receive(self, client: GrpcClient, call: Call, request: Any) -> Any:
        """Pop messages, then stream the status, the messages and the time of delivery. Messages not sent are given back.

        Returns the status.
        """
        topic, group = checked_topic(request.message_queue.topic), checked_group(request.group)
        invisible_ms = self._invisible_ms(request)
        poll_ms = self._poll_ms(client, call, request)
        subscription = subscription_of(topic, request.filter_expression)
        config = await self._brokers.group(group, topic)
        order = bool(config is not None and config.consume_message_orderly)
        broker_name = await self._broker_name(topic, request.message_queue.broker.name)
        header = PopMessageRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=ANY_QUEUE,
            max_msg_nums=min(max(request.batch_size, 1), MOST_POPPED),
            invisible_time=invisible_ms,
            poll_time=poll_ms,
            born_time=self._parts.now_ms(),
            init_mode=FROM_THE_END,
            exp_type=subscription.expression_type,
            exp=subscription.sub_string,
            order=order,
            attempt_id=request.attempt_id or None,
        )
        command = make_request(RequestCode.POP_MESSAGE, header)

        def too_late(answer: RemotingCommand) -> None:
            self._give_back(client, topic, group, self._received(answer, topic, broker_name, order))

        seconds = poll_ms / 1000 + CALL_SECONDS
        answer = await self._brokers.ask(client, broker_name, command, seconds, too_late)
        received = self._received(answer, topic, broker_name, order)
        if answer.code == ResponseCode.POLLING_FULL:
            raise ProxyError("TOO_MANY_REQUESTS", "too many receives wait at the broker")
        chosen = []
        for one in received:
            if not selects(subscription, one.message.properties.get(PROPERTY_TAGS)):
                self._in_background(self._ack(client, topic, group, one.handle))  # hashes of tags may be equal
            elif one.message.reconsume_times >= max_attempts(config):
                self._in_background(self._dead_letter(client, topic, group, one.message.msg_id, one.handle))
            else:
                chosen.append(one)
        return await self._hand_out(client, call, topic, group, chosen, auto_renew=request.auto_renew)

    async def _hand_out(
        self, client: GrpcClient, call: Call, topic: str, group: str, received: list[Received], *, auto_renew: bool
    ) -> Any:
        found = ok() if received else status("MESSAGE_NOT_FOUND", "no new message")
        renewed: list[tuple[str, str, str]] = []
        renews = bool(received) and auto_renew and self._parts.options.enable_proxy_auto_renew
        if renews:
            call.when_taken(lambda taken: self.renewal.taken(client, renewed, taken=taken))
        await call.send(ReceiveMessageResponse(status=found))
        left = list(received)
        try:
            while left and not call.is_over:
                one = left[0]
                response = ReceiveMessageResponse()
                hand_out(response.message, one.message, topic, one.text)
                waiting = call.send(response)
                left.pop(0)
                if renews:
                    key = group, response.message.system_properties.message_id, one.text
                    self.renewal.add(client, topic, key, one.handle)
                    renewed.append(key)
                await waiting
        finally:
            self._give_back(client, topic, group, left)
        await call.send(ReceiveMessageResponse(delivery_timestamp=timestamp(self._parts.now_ms())))
        return found

    def _invisible_ms(self, request: Any) -> int:
        options = self._parts.options
        if request.auto_renew and options.enable_proxy_auto_renew:
            return options.default_invisible_time_mills
        ms = milliseconds(request.invisible_duration)
        check_received_invisible(ms, options)
        return ms

    def _poll_ms(self, client: GrpcClient, call: Call, request: Any) -> int:
        """Return the ms that the pop may wait: as asked, within the limits, and no longer than the call's deadline allows."""
        options, remaining = self._parts.options, call.remaining_seconds()
        low = options.grpc_client_consumer_min_long_polling_timeout_millis
        high = options.grpc_client_consumer_max_long_polling_timeout_millis
        left_ms = None if remaining is None else int(remaining * 1000)
        if request.HasField("long_polling_timeout"):
            asked = milliseconds(request.long_polling_timeout)
        elif left_ms is None:
            asked = high
        else:
            settings = client.settings
            request_ms = milliseconds(settings.request_timeout) if settings.HasField("request_timeout") else 0
            asked = left_ms - (request_ms or DEFAULT_REQUEST_MS) // 2
        poll_ms = min(max(asked, low), high)
        if left_ms is None or poll_ms <= left_ms:
            return poll_ms
        if left_ms < low:
            raise ProxyError("ILLEGAL_POLLING_TIME", f"the deadline leaves {left_ms} ms, at least {low} are required")
        return left_ms - RESERVE_MS

    async def _broker_name(self, topic: str, wanted: str) -> str:
        """Return the broker to receive from: the one that the client wants, if it is served here, otherwise each in turn."""
        names = [broker.broker_name for broker, _ in readable(await self._brokers.route(topic))]
        names = [one for one in names if self._brokers.serves(one)]
        if wanted in names:
            return wanted
        if not names:
            raise ProxyError("FORBIDDEN", f"topic {topic} has no readable queue")
        return names[next(self._turn) % len(names)]

    def _received(self, answer: RemotingCommand, topic: str, broker_name: str, order: bool) -> list[Received]:
        result = pop_result(answer, topic, broker_name)
        if result.status is not PopStatus.FOUND:
            return []
        counts = {}
        if order:
            counts = parse_order_counts(decode_header(PopMessageResponseHeader, answer).order_count_info)
        received = []
        for message in result.messages:
            receipt = full_receipt(message.properties[PROPERTY_POP_CK])
            if counts:
                message = _counted(message, Receipt.parse(receipt), counts)
            received.append(Received(message, handle_text(receipt, message.physical_offset)))
        return received

    def _give_back(self, client: GrpcClient, topic: str, group: str, received: Iterable[Received]) -> None:
        """Make messages that were not sent visible again soon (invisibleTimeMillisWhenClear)."""
        ms = self._parts.options.invisible_time_millis_when_clear
        for one in received:
            self._in_background(self.change(client, topic, group, one.handle, ms))

    def _in_background(self, work: Any) -> None:
        def failed(reason: Any) -> None:
            self.log.warn("message stays invisible until its time ends: {e}", e=reason.value)

        defer.ensureDeferred(work).addErrback(failed)

    # AckMessage

    async def ack(self, client: GrpcClient, request: Any) -> Any:
        """Acknowledge consumed messages. Each entry has a status of its own."""
        topic, group = checked_topic(request.topic), checked_group(request.group)
        if not request.entries:
            raise ProxyError("BAD_REQUEST", "entries: must have at least one entry")
        check_count("entries", len(request.entries))
        entries = []
        for number, entry in enumerate(request.entries, 1):
            if not number % PARTS_OF_SLICE:
                await deferLater(self._parts.clock, 0)
            entries.append(await self._ack_entry(client, topic, group, entry))
        return AckMessageResponse(status=common_status(one.status for one in entries), entries=entries)

    async def _ack_entry(self, client: GrpcClient, topic: str, group: str, entry: Any) -> Any:
        try:
            await self._settled(
                client, group, entry.message_id, entry.receipt_handle, lambda one: self._ack(client, topic, group, one)
            )
            found = ok()
        except (ProxyError, ProtocolError) as error:
            found = status_of(error)
        return AckMessageResultEntry(message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=found)

    async def _settled(
        self, client: GrpcClient, group: str, message_id: str, text: str, act: Callable[[Handle], Awaitable[Settled]]
    ) -> Settled:
        """Stop renewing a message, and return what `act` does with its newest handle. If that fails, the handle stays for
        another try.
        """
        kept = self.renewal.remove(client, group, message_id, text)
        try:
            handle = live_handle(text, self._parts.now_ms()) if kept is None else await self.renewal.newest(kept)
            return await act(handle)
        except Exception:
            if kept is not None:
                self.renewal.put_back(client, message_id, text, kept)
            raise

    async def _ack(self, client: GrpcClient, topic: str, group: str, handle: Handle) -> None:
        receipt = handle.receipt
        header = AckMessageRequestHeader(
            consumer_group=group,
            topic=handle.topic(topic, group),
            queue_id=receipt.queue_id,
            extra_info=receipt.encode(),
            offset=receipt.queue_offset,
        )
        command = make_request(RequestCode.ACK_MESSAGE, header)
        succeeded(await self._brokers.ask(client, await self._known(topic, receipt.broker_name), command))

    async def _known(self, topic: str, broker_name: str) -> str:
        """Return the broker that a handle names. Raises ProxyError if the topic does not have that broker."""
        if broker_name not in {one.broker_name for one in (await self._brokers.route(topic)).broker_datas}:
            raise ProxyError("INVALID_RECEIPT_HANDLE", f"receipt_handle names broker {broker_name}, which is not known")
        return broker_name

    # ChangeInvisibleDuration

    async def change_invisible(self, client: GrpcClient, request: Any) -> Any:
        """Change the time at which a message becomes visible again. The answer has its new handle."""
        topic, group = checked_topic(request.topic), checked_group(request.group)
        ms = milliseconds(request.invisible_duration)
        check_changed_invisible(ms, self._parts.options)
        changed = await self._settled(
            client, group, request.message_id, request.receipt_handle,
            lambda one: self.change(client, topic, group, one, ms),
        )  # fmt: skip
        return ChangeInvisibleDurationResponse(status=ok(), receipt_handle=changed.encode())

    async def change(self, client: GrpcClient, topic: str, group: str, handle: Handle, ms: int) -> Handle:
        """Change a message's invisible time, and return its new handle. Raises BrokerError, ProxyError."""
        receipt = handle.receipt
        header = ChangeInvisibleTimeRequestHeader(
            consumer_group=group,
            topic=handle.topic(topic, group),
            queue_id=receipt.queue_id,
            extra_info=receipt.encode(),
            offset=receipt.queue_offset,
            invisible_time=ms,
        )
        command = make_request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        answer = await self._brokers.ask(client, await self._known(topic, receipt.broker_name), command)
        succeeded(answer)
        changed = decode_header(ChangeInvisibleTimeResponseHeader, answer)
        return handle.renewed(changed.pop_time, changed.invisible_time, changed.revive_qid)

    # ForwardMessageToDeadLetterQueue

    async def forward(self, client: GrpcClient, request: Any) -> Any:
        """Move a message to the dead letter queue, and acknowledge it. The answer is about the dead letter only."""
        topic, group = checked_topic(request.topic), checked_group(request.group)
        await self._settled(
            client, group, request.message_id, request.receipt_handle,
            lambda one: self._dead_letter(client, topic, group, request.message_id, one),
        )  # fmt: skip
        return ForwardMessageToDeadLetterQueueResponse(status=ok())

    async def _dead_letter(self, client: GrpcClient, topic: str, group: str, message_id: str, handle: Handle) -> None:
        if handle.physical_offset == UNKNOWN_OFFSET:
            raise ProxyError(
                "INVALID_RECEIPT_HANDLE", "receipt_handle has no commitLogOffset, the message cannot be found"
            )
        header = ConsumerSendMsgBackRequestHeader(
            offset=handle.physical_offset,
            group=group,
            delay_level=-1,
            origin_msg_id=message_id,
            origin_topic=handle.topic(topic, group),
            max_reconsume_times=0,
        )
        command = make_request(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        broker_name = await self._known(topic, handle.receipt.broker_name)
        succeeded(await self._brokers.ask(client, broker_name, command))
        try:
            await self._ack(client, topic, group, handle)
        except (ProxyError, RocketMQError) as error:  # a client that tried again would make one more dead letter
            self.log.warn(
                "dead letter not acknowledged, it will be delivered again: group={g} topic={t} message={m} {e}",
                g=group, t=topic, m=message_id, e=error,
            )  # fmt: skip


def _counted(message: MessageExt, receipt: Receipt, counts: Mapping[tuple[str, str], int]) -> MessageExt:
    """Return a message of an ordered pop with the times that it was consumed before: its own, or those of its queue."""
    for key in (offset_count_key(message.queue_id, message.queue_offset), str(message.queue_id)):
        count = counts.get((receipt.mark, key))
        if count:
            return attrs.evolve(message, reconsume_times=count)
    return message
