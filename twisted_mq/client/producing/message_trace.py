"""Sends traces of the sends and listener calls of producers and consumers (Apache: AsyncTraceDispatcher and its hooks).

Records are gathered and leave every five seconds, or when many wait, with the messages' ids and keys as keys. Tracing
never fails a send or a listener call: records that cannot be sent are logged and dropped.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence

import attrs
from twisted.internet import defer

from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.outgoing import outgoing
from twisted_mq.client.producing.producer_options import ProducerOptions, SendLimits
from twisted_mq.client.producing.send_result import SendResult, SendStatus
from twisted_mq.client.producing.sender import Sender
from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.messages.trace import (
    DEFAULT_REGION,
    ConsumeEndTrace,
    ConsumeStartTrace,
    EndTransactionTrace,
    PublishTrace,
    Trace,
    encode_trace,
)
from twisted_mq.protocol.text.properties import (
    KEY_SEPARATOR,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_MSG_REGION,
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TRACE_SWITCH,
    PROPERTY_TRANSACTION_PREPARED,
)

FLUSH_SECONDS = 5.0
"""flushTraceInterval"""
MOST_WAITING = 2048
"""traceContextQueue: further records are dropped."""
BATCH = 100
"""As many records leave at once, without waiting for the interval."""
MAX_BODY_BYTES = 128_000

NORMAL, HALF, DELAYED = 0, 1, 3
"""Indexes in Apache's MessageType."""

_DELAYS = (PROPERTY_DELAY_TIME_LEVEL, PROPERTY_TIMER_DELAY_MS, PROPERTY_TIMER_DELAY_SEC, PROPERTY_TIMER_DELIVER_MS)


@attrs.frozen
class _Waiting:
    text: str
    keys: tuple[str, ...]


class TraceDispatcher:
    """The traces of one producer or consumer. Its owner starts and stops it."""

    log = Logger()

    def __init__(self, client: MQClient, group: str, topic: str, word: str) -> None:
        """`word` is PRODUCE or CONSUME, part of the name of the group that sends."""
        self._client = client
        self._group = group
        self._topic = topic
        self._options = ProducerOptions(
            send_timeout_seconds=5.0, limits=SendLimits(max_message_size=MAX_BODY_BYTES, compress_over_bytes=1 << 30)
        )
        self._sender = Sender(client, f"_INNER_TRACE_PRODUCER-{group}-{word}-1", self._options)
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._job: PeriodicJob | None = None
        self._one_at_a_time = defer.DeferredLock()
        self.dropped = 0

    def start(self) -> None:
        self._job = PeriodicJob(f"traces of {self._group}", self._client.reactor, FLUSH_SECONDS, self.flush)

    async def stop(self, finish_seconds: float) -> None:
        """Send the waiting records, for that long at most."""
        job, self._job = self._job, None
        if job is not None:
            job.stop()
        await self.flush().addTimeout(finish_seconds, self._client.reactor, onTimeoutCancel=lambda *_: None)

    def flush(self) -> defer.Deferred[None]:
        """Send the waiting records; fires when they are answered or given up."""
        return self._one_at_a_time.run(lambda: defer.Deferred.fromCoroutine(self._send_all()))

    # events

    def published(self, messages: Sequence[Message], result: SendResult, began_ms: int, body_length: int) -> None:
        """Trace the send of a message, or of a batch's messages."""
        first = messages[0]
        if first.topic.startswith(self._topic) or not result.trace_on:
            return
        alone = len(messages) == 1
        trace = PublishTrace(
            timestamp=began_ms,
            region_id=result.region_id,
            group=self._group,
            topic=first.topic,
            msg_id=result.msg_id,
            tags=first.tags if alone else None,
            keys=first.properties.get(PROPERTY_KEYS) if alone else None,
            store_host=self._client.routes.master_now(self._client.routes.placed(result.queue).broker_name) or "",
            body_length=body_length,
            cost_ms=self._client.wall_ms() - began_ms,
            message_type=_message_type(first),
            offset_msg_id=result.offset_msg_id,
            success=result.status is SendStatus.SEND_OK,
        )
        self._add(trace, [*result.msg_id.split(","), *(key for message in messages for key in message.keys)])

    def decided(self, message: Message | MessageExt, msg_id: str, broker: str, state: str, *, checked: bool) -> None:
        """Trace a transaction's message that was committed, rolled back or left open."""
        trace = EndTransactionTrace(
            timestamp=self._client.wall_ms(),
            region_id=message.properties.get(PROPERTY_MSG_REGION) or DEFAULT_REGION,
            group=self._group,
            topic=message.topic,
            msg_id=msg_id,
            tags=message.tags,
            keys=message.properties.get(PROPERTY_KEYS),
            store_host=broker,
            transaction_id=msg_id,
            state=state,
            from_check=checked,
        )
        self._add(trace, [msg_id, *message.keys])

    def call_began(self, messages: Sequence[MessageExt]) -> list[ConsumeStartTrace]:
        """Trace the start of a listener call. Pass the return value to `call_ended`."""
        now, request_id = self._client.wall_ms(), self._client.unique_key()
        begun = [
            ConsumeStartTrace(
                timestamp=now,
                region_id=message.properties.get(PROPERTY_MSG_REGION) or DEFAULT_REGION,
                group=self._group,
                request_id=request_id,
                msg_id=message.unique_key or message.msg_id,
                retry_times=message.reconsume_times,
                keys=message.properties.get(PROPERTY_KEYS),
            )
            for message in messages
            if message.properties.get(PROPERTY_TRACE_SWITCH) != "false"
        ]
        for one in begun:
            self._add(one, [one.msg_id, *(one.keys or "").split()])
        return begun

    def call_ended(self, begun: Sequence[ConsumeStartTrace], context_code: int) -> None:
        """Trace the end of a listener call; the code is 0 for success."""
        now = self._client.wall_ms()
        for one in begun:
            trace = ConsumeEndTrace(
                request_id=one.request_id,
                msg_id=one.msg_id,
                cost_ms=(now - one.timestamp) // len(begun),
                success=context_code == 0,
                keys=one.keys,
                context_code=context_code,
                timestamp=now,
                group=self._group,
            )
            self._add(trace, [one.msg_id, *(one.keys or "").split()])

    # sending

    def _add(self, trace: Trace, keys: Sequence[str]) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(_Waiting(encode_trace(trace), tuple(keys)))
        if len(self._waiting) >= BATCH and not self._one_at_a_time.locked and self._job is not None:
            self.flush()

    async def _send_all(self) -> None:
        while self._waiting:
            text, keys, size = list[str](), dict[str, None](), 0
            while self._waiting and size < MAX_BODY_BYTES // 2 and len(text) < BATCH:
                one = self._waiting.popleft()
                text.append(one.text)
                size += len(one.text.encode())
                keys.update(dict.fromkeys(one.keys))
            await self._send("".join(text).encode(), KEY_SEPARATOR.join(keys))

    async def _send(self, body: bytes, keys: str) -> None:
        message = Message(self._topic, body, properties={PROPERTY_KEYS: keys})
        ready = outgoing(message, self._client.unique_key(), self._options.limits)
        try:
            await self._sender.deliver(ready, None, None)
        except EXPECTED_ERRORS as error:
            self.log.warn("traces not sent: group={group} bytes={size} {error}", group=self._group, size=len(body),
                          error=error)  # fmt: skip


def _message_type(message: Message) -> int:
    if message.properties.get(PROPERTY_TRANSACTION_PREPARED) == "true":
        return HALF
    return DELAYED if any(name in message.properties for name in _DELAYS) else NORMAL
