"""Sends: codes 10 (SEND_MESSAGE), 310 (its one-letter form) and 320 (batch). Apache: SendMessageProcessor.

This is the broker's hottest path: a topic's checks are done once and kept in a `SendTarget`, the answer is made from a
template, and nothing waits unless durability was asked for. Messages that are not plain are made in other modules:
`send_batch`, `send_retried`, `send_postponed`.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Final, cast

import attrs
from twisted.internet import defer

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processors.send_batch import BatchSends, check_short, is_long, stretches
from twisted_mq.broker.processors.send_checks import PROPERTIES_TOO_LONG, SendChecks, SendHeader, SendTarget, not_stored
from twisted_mq.broker.processors.send_parts import SendParts
from twisted_mq.broker.processors.send_postponed import UNUSUAL, UNUSUAL_IN_ORDER, PostponedSends, queue_by_priority
from twisted_mq.broker.processors.send_retried import RetriedSends, undelayed
from twisted_mq.broker.statistics.distributions import SIZE_LIMITS
from twisted_mq.config.values import value_text
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import MessageSysFlag, without_commit
from twisted_mq.protocol.headers import (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from twisted_mq.protocol.layouts.message_id import offset_message_id_pattern, offset_message_ids
from twisted_mq.protocol.remarks import OVERLOAD
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.text.properties import MAX_PROPERTIES_BYTES, PROPERTY_PRIORITY, decode_properties
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import RESPONSE_FLAG, RemotingCommand
from twisted_mq.protocol.wire.header_codec import TypedCommand, fast_header
from twisted_mq.protocol.wire.sent_answers import SentAnswers
from twisted_mq.remoting.channel import Answer, Channel, Ready
from twisted_mq.storage.interfaces import InnerBatch, InnerMessage, PutResult, PutStatus
from twisted_mq.turns import Work, outcome

Read = Callable[[RemotingCommand], SendHeader]
_COMMIT: Final = int(MessageSysFlag.TRANSACTION_COMMIT_TYPE)
_PUT_OK, _SUCCESS = PutStatus.PUT_OK, int(ResponseCode.SUCCESS)
"""Constants of this module, as each send looks at them: up to Python 3.11 an enum's member takes a hundredth of a send."""
Sent = Callable[[RemotingCommand, InnerMessage, PutResult, int], bytes]


def brokers_properties(options: BrokerOptions) -> dict[str, str]:
    """Return the properties that the broker adds to every message, in their order."""
    return {
        "CLUSTER": options.broker_cluster_name,
        "MSG_REGION": options.region_id,
        "TRACE_ON": value_text(options.trace_on),
    }


class SendAnswers:
    """Encodes answers for one store host (8 or 20 bytes).

    Each answer names the region (MSG_REGION), and says whether the broker takes traces (TRACE_ON).
    """

    def __init__(self, store_host: bytes, region: str, *, trace_on: bool = True) -> None:
        self._store_host = store_host
        self._message_id = offset_message_id_pattern(store_host)
        self._fields = {"MSG_REGION": region, "TRACE_ON": value_text(trace_on)}
        self._encode = answer_encoder(SendMessageResponseHeader, self._fields)

    def sent(
        self,
        command: RemotingCommand,
        message: InnerMessage,
        result: PutResult,
        code: int,
        *,
        queue_id: int | None = None,
        batch_uniq_id: str | None = None,
        recall_handle: str | None = None,
    ) -> bytes:
        """Return the frame that says where a message or batch is. `code` is SUCCESS or a durability that was not reached.

        `queue_id` is the requested queue if the message is in another one. The offset is that of the message's queue.
        """
        return self._encode(
            command, code, None, 0,
            msg_id=self._message_ids(result),
            queue_id=message.queue_id if queue_id is None else queue_id,
            queue_offset=result.queue_offset,
            transaction_id=message.property_map.get("UNIQ_KEY", ""),
            batch_uniq_id=batch_uniq_id,
            recall_handle=recall_handle,
        )  # fmt: skip

    def handed(self, command: RemotingCommand, message: InnerMessage, result: PutResult) -> TypedCommand:
        """Return the answer to this process's own proxy: its header is handed on as it is."""
        header = SendMessageResponseHeader(
            msg_id=self._message_ids(result),
            queue_id=message.queue_id,
            queue_offset=result.queue_offset,
            transaction_id=message.property_map.get("UNIQ_KEY", ""),
        )
        return TypedCommand(_SUCCESS, command.opaque, RESPONSE_FLAG, header=header)

    def _message_ids(self, result: PutResult) -> str:
        offsets = result.physical_offsets
        return offset_message_ids(self._store_host, offsets) if offsets else self._message_id % result.physical_offset

    def shaped(self, serialize_type: int) -> SentAnswers:
        """Return the encoder of many of these answers."""
        return SentAnswers(self._store_host, self._fields, serialize_type)

    def refused(self, error: BrokerError) -> BrokerError:
        """Return the refusal with the fields of a send's answer added, unless it says that the broker failed."""
        failed = error.response_code == ResponseCode.SYSTEM_ERROR
        return error if failed else error.with_fields({**self._fields, **error.ext_fields})


class SendMessageProcessor:
    """Puts sent messages into the store. `processors` maps the request codes to its methods."""

    def __init__(self, broker: SendParts, checks: SendChecks, answers: SendAnswers) -> None:
        options = broker.options
        always = brokers_properties(options)
        self._broker = broker
        self._checks = checks
        self._targets = checks.targets
        self._answers = answers
        self._timed_put = broker.timed_put
        self._statistics = broker.statistics
        self._batches = BatchSends(always)
        self._retried = RetriedSends(broker.topics, broker.groups, broker.locks, broker.now_ms)
        self._postponed = PostponedSends(broker.transactions, broker.postponement, always, options.broker_name)
        self._suffix = "".join(f"{name}\x01{value}\x02" for name, value in always.items())
        self._has_to_wait = broker.durability.waits
        self._puts = broker.statistics.puts
        self._small = sys.maxsize if broker.statistics.request_times is None else SIZE_LIMITS[0]
        self._waiting = checks.waiting
        self._read_v1 = fast_header(SendMessageRequestHeader)
        self._read_v2 = fast_header(SendMessageRequestHeaderV2)
        self.processors = {
            RequestCode.SEND_MESSAGE: self.send_v1,
            RequestCode.SEND_MESSAGE_V2: self.send_v2,
            RequestCode.SEND_BATCH_MESSAGE: self.send_v2,
        }

    def send_v1(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Process a request with the full header. Raises BrokerError."""
        return self._send(channel, command, self._read_v1(command))

    def send_v2(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Process a request with the one-letter header. Raises BrokerError."""
        return self._send(channel, command, self._read_v2(command))

    def _send(self, channel: Channel, command: RemotingCommand, header: SendHeader) -> Answer:
        """Put what was sent; refusals have the fields of a send's answer."""
        try:
            if self._waiting.count >= self._waiting.most:
                raise BrokerError(ResponseCode.SYSTEM_BUSY, OVERLOAD)
            target = self._targets.get(header.topic)
            queue_id = header.queue_id
            if target is None or queue_id >= target.queue_limit:
                target = self._checks.target(channel, header)
            if queue_id < 0:
                queue_id = self._broker.random.randrange(target.write_queue_nums or 1)
            text = header.properties or ""
            if len(text) > MAX_PROPERTIES_BYTES:
                self._statistics.put_failed += 1
                raise not_stored(self._broker.options, PROPERTIES_TOO_LONG)
            if target.is_special:
                return self._send_special(channel, command, header, target, queue_id)
            if header.batch:
                return self._send_batch(channel, command, header, target, queue_id)
            message = self._message(channel, command, header, text, target, queue_id)
            result = self._timed_put.call(message)
            if message.topic is not target.topic:
                return self._stored_elsewhere(command, message, result, queue_id)
            return self._stored(command, message, result)
        except BrokerError as error:
            raise self._answers.refused(error) from error

    def _message(
        self,
        channel: Channel,
        command: RemotingCommand,
        header: SendHeader,
        text: str,
        target: SendTarget,
        queue_id: int,
    ) -> InnerMessage:
        """Return the message with these properties and those that the broker adds. Raises BrokerError."""
        try:
            properties = dict([part.split("\x01", 1) for part in text.split("\x02") if part])
        except ValueError:
            properties = decode_properties(text)
        if text and text[-1] != "\x02":
            text += "\x02"
        unusual = not UNUSUAL.isdisjoint(properties)
        if unusual and target.order_mode is not None:
            unusual = not UNUSUAL_IN_ORDER.isdisjoint(properties)
        if unusual:
            text = self._postponed.cleaned(
                text, properties, header.sys_flag, command.body, order_mode=target.order_mode
            )
            queue_id = queue_by_priority(properties, queue_id, target.write_queue_nums)
        if not properties.get("UNIQ_KEY"):
            properties["UNIQ_KEY"] = key = self._broker.unique_keys.make()
            text += f"UNIQ_KEY\x01{key}\x02"
        if not command.body:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "body: must have at least one byte, got none")
        tags, sys_flag = properties.get("TAGS"), header.sys_flag
        if sys_flag & _COMMIT:
            sys_flag = without_commit(sys_flag)
        message = InnerMessage(
            target.topic,
            queue_id,
            command.body,
            (text + self._suffix).encode(),
            properties,
            tags_code(tags) if tags else 0,
            header.flag,
            sys_flag | 2 if target.multi_tag else sys_flag,
            header.born_timestamp,
            channel.packed_address,
            header.reconsume_times or 0,
        )
        return self._postponed.put_aside(message) if unusual else message

    def _send_special(
        self, channel: Channel, command: RemotingCommand, header: SendHeader, target: SendTarget, queue_id: int
    ) -> Answer:
        """Process a send to a retry, ordered or new topic. For a new topic, the answer leaves when clients find its route."""
        if header.batch:
            answer = self._send_batch(channel, command, header, target, queue_id)
        elif target.order_mode is not None:
            answer = self._send_ordered(channel, command, header, target.order_mode, target, queue_id)
        elif target.is_retry:
            answer = self._send_retried(channel, command, header, target, queue_id)
        else:
            message = self._message(channel, command, header, header.properties or "", target, queue_id)
            answer = self._stored_elsewhere(command, message, self._timed_put.call(message), queue_id)
        return self._when_known(target, answer) if target.is_new else answer

    def _send_ordered(
        self,
        channel: Channel,
        command: RemotingCommand,
        header: SendHeader,
        order_mode: str,
        target: SendTarget,
        queue_id: int,
    ) -> Answer:
        sends = self._broker.ordering.asked(target.topic).sends
        message = self._message(channel, command, header, header.properties or "", target, queue_id)
        sent = functools.partial(self._answers.sent, command, message)
        return self._ordered(sends.take(order_mode, message, self._put, sent))

    def _put(self, message: InnerMessage) -> PutResult:
        """Put and count an ordered message. Raises BrokerError."""
        result = self._timed_put.call(message)
        self._count(message, result)
        return result

    def _ordered(self, answer: Answer) -> Answer:
        """Count an ordered send as a waiting send while it waits for the slave."""
        if isinstance(answer, defer.Deferred):
            self._waiting.wait(answer)
        return answer

    def _send_retried(
        self, channel: Channel, command: RemotingCommand, header: SendHeader, target: SendTarget, queue_id: int
    ) -> Answer:
        text = header.properties or ""
        dead = self._retried.dead_letters(header, command.version)
        if dead is None:
            message = self._message(channel, command, header, text, target, queue_id)
        else:
            message = self._message(channel, command, header, undelayed(text), dead, 0)
        return self._stored_elsewhere(command, message, self._timed_put.call(message), queue_id)

    def _send_batch(
        self, channel: Channel, command: RemotingCommand, header: SendHeader, target: SendTarget, queue_id: int
    ) -> Answer:
        pattern = self._batches.pattern(header, target, queue_id, channel.packed_address)
        if target.order_mode is not None:
            return self._send_ordered_batch(command, target.order_mode, pattern)
        unique_key = self._batches.inner_key(target, pattern)
        if unique_key is None:
            if is_long(command.body):
                answer: Ready | defer.Deferred[Ready]
                answer = self._broker.turns.run(("batches", channel), self._send_long_batch(command, pattern))
                return answer
            batch = self._batches.messages(command.body, pattern)
            return self._batch_stored(command, pattern, self._broker.store.put_messages(batch))
        message = self._batches.inner(command.body, header.flag, pattern)
        sent = functools.partial(self._answers.sent, batch_uniq_id=unique_key)
        return self._batch_stored(command, message, self._timed_put.call(message), sent)

    def _send_long_batch(self, command: RemotingCommand, pattern: InnerMessage) -> Work[Ready]:
        """Store one stretch of the batch a turn, so that other work runs between. A refusal keeps the earlier stretches."""
        try:
            results: list[PutResult] = []
            for body in (yield from stretches(command.body)):
                if results:
                    yield None
                results.append(self._broker.store.put_messages(self._batches.messages(body, pattern)))
                if results[-1].status is not _PUT_OK:
                    raise self._not_stored(results[-1])
                self._broker.dispatch()
            answer = self._batch_stored(command, pattern, joined(results))
            if isinstance(answer, defer.Deferred):
                return (yield from outcome(cast("defer.Deferred[Ready]", answer)))
            return answer
        except BrokerError as error:
            raise self._answers.refused(error) from error

    def _send_ordered_batch(self, command: RemotingCommand, order_mode: str, pattern: InnerMessage) -> Answer:
        sends = self._broker.ordering.asked(pattern.topic).sends
        check_short(command.body)
        batch = self._batches.messages(command.body, pattern)
        sent = functools.partial(self._answers.sent, command, pattern)
        return self._ordered(sends.take_batch(order_mode, batch, self._put_batch, sent))

    def _put_batch(self, batch: InnerBatch) -> PutResult:
        result = self._broker.store.put_messages(batch)
        self._count(batch.shared, result)
        return result

    # answers

    def _stored(
        self, command: RemotingCommand, message: InnerMessage, result: PutResult, sent: Sent | None = None
    ) -> Answer:
        """Count a put and return its answer, now or once it is as durable as declared. `sent` encodes it. Raises BrokerError."""
        if result.status is not _PUT_OK:
            raise self._not_stored(result)
        size = result.end_offset - result.physical_offset
        puts = self._puts[message.topic]
        counter = puts[message.queue_id]
        counter.times += 1
        counter.bytes += size
        self._statistics.put_messages += 1
        if size > self._small:
            puts.record(size, result.message_count)
        if self._has_to_wait and message.property_map.get("WAIT") != "false":
            return self._when_durable(command, message, result, sent or self._answers.sent)
        if sent is None and type(command) is TypedCommand:
            return self._answers.handed(command, message, result)
        return (sent or self._answers.sent)(command, message, result, _SUCCESS)

    def _not_stored(self, result: PutResult) -> BrokerError:
        self._statistics.put_failed += 1
        return not_stored(self._broker.options, result)

    def _batch_stored(
        self, command: RemotingCommand, message: InnerMessage, result: PutResult, sent: Sent | None = None
    ) -> Answer:
        """Like `_stored`, which counts one message: count the others too."""
        count = result.message_count
        if result.status is _PUT_OK and count > 1:
            puts = self._puts[message.topic]
            puts[message.queue_id].more += count - 1
            self._statistics.put_messages += count - 1
            size = result.end_offset - result.physical_offset
            if size <= self._small:
                puts.record(size, count)
        return self._stored(command, message, result, sent)

    def _count(self, message: InnerMessage, result: PutResult) -> None:
        """Count a put outside of the hottest path. Raises BrokerError for what was not put."""
        if result.status is not _PUT_OK:
            raise self._not_stored(result)
        count, size = result.message_count, result.end_offset - result.physical_offset
        self._statistics.count_send(message.topic, count, size, queue_id=message.queue_id)

    def _stored_elsewhere(
        self, command: RemotingCommand, message: InnerMessage, result: PutResult, queue_id: int
    ) -> Answer:
        """Return the answer for a message that waits or is a dead letter: it names the queue that was asked for, or the
        priority's.
        """
        handle = self._postponed.stored(message) if result.status is PutStatus.PUT_OK else None
        if PROPERTY_PRIORITY in message.property_map:
            queue_id = message.queue_id
        sent = functools.partial(self._answers.sent, queue_id=queue_id, recall_handle=handle)
        return self._stored(command, message, result, sent)

    def _when_known(self, target: SendTarget, answer: Answer) -> Answer:
        """Return the answer once clients that ask for the topic's route get one."""
        known = self._checks.when_known(target.topic)
        return answer if known.called else defer.Deferred.fromCoroutine(_behind(known, answer))

    def _when_durable(self, command: RemotingCommand, message: InnerMessage, result: PutResult, sent: Sent) -> Answer:
        waiting = self._broker.durability.reached(result.end_offset)
        self._waiting.wait(waiting)
        return waiting.addCallback(self._durable, command, message, result, sent)

    def _durable(
        self, code: int, command: RemotingCommand, message: InnerMessage, result: PutResult, sent: Sent
    ) -> bytes:
        by_queue = self._puts[message.topic][message.queue_id]
        by_queue.elapsed_ms += self._broker.wall_ms() - result.store_timestamp
        return sent(command, message, result, code)


def joined(results: Sequence[PutResult]) -> PutResult:
    """Return the joint result of batches that were stored one after the other."""
    first, last = results[0], results[-1]
    return attrs.evolve(
        first,
        end_offset=last.end_offset,
        message_count=sum(one.message_count for one in results),
        physical_offsets=tuple(itertools.chain.from_iterable(one.physical_offsets for one in results)),
    )


async def _behind(known: defer.Deferred[None], answer: Answer) -> Ready:
    await known
    return await answer if isinstance(answer, defer.Deferred) else answer
