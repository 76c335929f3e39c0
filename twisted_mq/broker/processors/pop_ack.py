"""Acknowledgements of popped messages: codes 200051 (ACK_MESSAGE) and 200151 (BATCH_ACK_MESSAGE).

Apache: AckMessageProcessor. A receipt that is not of a pop of this broker acknowledges nothing and is answered with success. What
the store does not take is refused: the client may acknowledge again.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from twisted.internet import defer

from twisted_mq.broker.pop.acknowledge import Refusal
from twisted_mq.broker.pop.answer_when_durable import when_durable
from twisted_mq.broker.pop.checks import check_revive_queue, existing_queue
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.pop_service import PopService
from twisted_mq.protocol.bodies import AckMsg, BatchAck, BatchAckMessageRequestBody, BatchAckMsg
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import AckMessageRequestHeader
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.names.pop_topics import ORDER_REVIVE_QUEUE, marked_topic
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.remoting.channel import Answer, Channel, Ready
from twisted_mq.turns import Work

BITS_OF_SLICE = 20_000
"""The limit of bit set characters that are read in one turn: about 10 ms."""
MESSAGES_OF_SLICE = 5000
ACK_COST = 50
"""The cost of an entry apart from its messages, in messages: it is a record in the revive log. A slice takes about 10 ms."""


@attrs.frozen
class _Batch:
    """A checked entry of a batch: the topic that it names, and those of its offsets that its queue has."""

    ack: BatchAck
    topic: str
    group: str
    offsets: list[int]


class AckMessageProcessor:
    """Records that messages were consumed. `processors` maps the request codes to its methods."""

    def __init__(self, broker: PopParts, pop: PopService) -> None:
        self._broker = broker
        self._revive_log = pop.revive_log
        self._acknowledgements = pop.acknowledgements
        self._read = fast_header(AckMessageRequestHeader)
        self.processors = {RequestCode.ACK_MESSAGE: self.ack, RequestCode.BATCH_ACK_MESSAGE: self.ack_batch}

    def ack(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Acknowledge one message, named by its queue, its offset and the receipt that it was popped with."""
        broker, header = self._broker, self._read(command)
        first, end = existing_queue(broker, channel, header)
        topic, group, queue_id, offset = header.topic, header.consumer_group, header.queue_id, header.offset
        if not first <= offset <= end:
            remark = f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{first}~{end}"
            raise BrokerError(ResponseCode.NO_MESSAGE, remark)
        receipt = Receipt.parse(header.extra_info)
        if receipt.is_order:
            place = topic, group, queue_id
            refusal = self._acknowledgements.take_in_order(channel.address, place, offset, receipt.pop_time)
            return _answer(command, refusal)
        check_revive_queue(broker, self._revive_log, receipt.revive_queue_id)
        ack = AckMsg(offset, receipt.start_offset, group, topic, queue_id, receipt.pop_time, receipt.broker_name)
        due_ms = receipt.pop_time + receipt.invisible_time
        refusal = self._acknowledgements.settle(ack, receipt.revive_queue_id, due_ms, offset)
        return when_durable(broker, _answer(command, refusal))

    def ack_batch(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Acknowledge messages of several pops. A malformed entry refuses all. Offsets that a queue does not have are skipped.

        If one entry is refused the others count: the client may acknowledge all of them again.
        """
        if not command.body:
            return self._ack_batch(channel, command, BatchAckMessageRequestBody())
        read = self._broker.bodies.read
        return read(BatchAckMessageRequestBody, channel, command, lambda body: self._ack_batch(channel, command, body))

    def _ack_batch(self, channel: Channel, command: RemotingCommand, body: BatchAckMessageRequestBody) -> Answer:
        if not body.acks:
            raise BrokerError(ResponseCode.NO_MESSAGE, "acks: none in the body")
        acked = self._broker.turns.run(("acks", channel), self._ack_in_slices(channel, body))
        if not isinstance(acked, defer.Deferred):
            return when_durable(self._broker, _answer(command, acked))
        return defer.Deferred.fromCoroutine(self._when_acked(command, acked))

    async def _when_acked(self, command: RemotingCommand, acked: defer.Deferred[Refusal | None]) -> Ready:
        answer = when_durable(self._broker, _answer(command, await acked))
        return await answer if isinstance(answer, defer.Deferred) else answer

    def _ack_in_slices(self, channel: Channel, body: BatchAckMessageRequestBody) -> Work[Refusal | None]:
        """Acknowledge in slices. Returns why the first message is refused; None if all are acknowledged."""
        batches: list[_Batch] = []
        cost = 0
        for index, ack in enumerate(body.acks):
            if cost > BITS_OF_SLICE:
                cost = 0
                yield None
            batches.append(self._look_through(index, ack))
            cost += ACK_COST + len(ack.bit_set or "")
        refusal = None
        for batch in batches:
            acked = self._ack_in_order if batch.ack.revive_queue_id == ORDER_REVIVE_QUEUE else self._ack_popped
            for refused, messages in acked(channel, batch, body.broker_name):
                refusal = refusal or refused
                cost += ACK_COST + messages
                if cost > MESSAGES_OF_SLICE:
                    cost = 0
                    yield None
        return refusal

    def _look_through(self, index: int, ack: BatchAck) -> _Batch:
        """Return the checked entry. Raises BrokerError, which names the entry and its member."""
        store, group = self._broker.store, ack.consumer_group
        if ack.topic is None or group is None or ack.retry is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"acks[{index}]: c, t and r are needed, got {ack}")
        try:
            topic = marked_topic(ack.topic, group, ack.retry)
        except ValueError as error:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"acks[{index}].r: {error}") from error
        if ack.revive_queue_id != ORDER_REVIVE_QUEUE:
            check_revive_queue(self._broker, self._revive_log, ack.revive_queue_id)
        first, end = store.min_offset_in_queue(topic, ack.queue_id), store.max_offset_in_queue(topic, ack.queue_id)
        return _Batch(ack, topic, group, ack.offsets_between(first, end))

    def _ack_in_order(self, channel: Channel, batch: _Batch, _: str | None) -> Iterator[tuple[Refusal | None, int]]:
        """Acknowledge messages of an ordered group, one at each step. Yields a refusal, or None, and how many it is about."""
        ack, place = batch.ack, (batch.topic, batch.group, batch.ack.queue_id)
        for offset in batch.offsets:
            yield self._acknowledgements.take_in_order(channel.address, place, offset, ack.pop_time), 1

    def _ack_popped(self, _: Channel, batch: _Batch, broker_name: str | None) -> Iterator[tuple[Refusal | None, int]]:
        """Acknowledge the messages of one pop in one step."""
        if not batch.offsets:
            return
        ack = batch.ack
        noted = BatchAckMsg(
            -1, ack.start_offset, batch.group, batch.topic, ack.queue_id, ack.pop_time, broker_name, batch.offsets
        )
        due_ms = ack.pop_time + ack.invisible_time
        yield self._acknowledgements.settle(noted, ack.revive_queue_id, due_ms, *batch.offsets), len(batch.offsets)


def _answer(command: RemotingCommand, refusal: Refusal | None) -> RemotingCommand:
    return command.answer() if refusal is None else command.answer(refusal.code, refusal.remark)
