"""Serves pops: code 200050 (POP_MESSAGE). Apache: PopMessageProcessor.

A pop that finds nothing and may wait is held. Messages that it finds are in the revive log before the answer leaves.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs
from twisted.internet import defer

from twisted_mq.broker.filter.selection import Selection, expression_selection
from twisted_mq.broker.pop.answer_when_durable import when_durable
from twisted_mq.broker.pop.checks import (
    check_broker,
    check_invisible_time,
    header_and_born_time,
    readable_topic,
    refused_with,
)
from twisted_mq.broker.pop.held import NotHeld, after, hold
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.reader import Popped, PopReader
from twisted_mq.broker.waiting_requests import WaitingKind, WaitingLine
from twisted_mq.protocol.bodies.pop import MOST_POPPED
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import PopMessageRequestHeader, PopMessageResponseHeader
from twisted_mq.protocol.names.pop_receipt import join_infos
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header, fast_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import if_connected

LATE_MS = 500
"""A pop whose poll time ended this long ago is not served any more (Apache: PopMessageRequestHeader.isTimeoutTooMuch)."""
EVERYTHING = Selection(None)
_REFUSED = encode_header(PopMessageResponseHeader(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0))
_NOT_FOUND = {NotHeld.NO_TIME: ResponseCode.POLLING_TIMEOUT, NotHeld.FULL: ResponseCode.POLLING_FULL}
_encode = answer_encoder(PopMessageResponseHeader)


class PopMessageProcessor:
    """Hands out messages that have to be acknowledged. `processors` maps the request code to it."""

    def __init__(self, broker: PopParts, reader: PopReader) -> None:
        self._broker = broker
        self._reader = reader
        self._read = fast_header(PopMessageRequestHeader)
        self.processors = {RequestCode.POP_MESSAGE: refused_with(_REFUSED, self.pop)}

    def pop(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Answer at once, or hold the pop and answer when a message arrives or its time is up."""
        broker = self._broker
        header, born_ms = header_and_born_time(PopMessageRequestHeader, self._read, command, broker)
        if broker.now_ms() - born_ms - header.poll_time > LATE_MS:
            remark = f"the broker[{broker.advertised_ip}] pop message is timeout too much"
            raise BrokerError(ResponseCode.POLLING_TIMEOUT, remark)
        popped = self._pop(channel, header)
        if isinstance(popped, defer.Deferred):
            return after(popped, lambda popped: self._found_or_held(channel, command, header, born_ms, popped))
        return self._found_or_held(channel, command, header, born_ms, popped)

    def _found_or_held(
        self, channel: Channel, command: RemotingCommand, header: PopMessageRequestHeader, born_ms: int, popped: Popped
    ) -> Answer:
        if popped.records:
            return self._found(command, header, popped)
        tags_codes = self._selection(header).tags_codes
        waiting = hold(self._broker, HeldPop(self, channel, command, header, born_ms, tags_codes), header.poll_time)
        if isinstance(waiting, NotHeld):
            return self._answer(command, header, popped, _NOT_FOUND[waiting])
        return waiting

    def again(self, channel: Channel, command: RemotingCommand, header: PopMessageRequestHeader, last: bool) -> Answer:
        """Answer a pop that waits; None if nothing was found and it goes on waiting.

        A pop that looks into so many queues that it takes several turns is answered in any case.
        """
        popped = self._pop(channel, header)
        if isinstance(popped, defer.Deferred):
            return after(popped, lambda popped: self._found_or_over(command, header, popped))
        return self._found_or_over(command, header, popped) if popped.records or last else None

    def _found_or_over(self, command: RemotingCommand, header: PopMessageRequestHeader, popped: Popped) -> Answer:
        if popped.records:
            return self._found(command, header, popped)
        return self._answer(command, header, popped, ResponseCode.POLLING_TIMEOUT)

    def _pop(self, channel: Channel, header: PopMessageRequestHeader) -> Popped | defer.Deferred[Popped]:
        check_broker(self._broker, "pop message")
        self._check_numbers(header)
        config = readable_topic(self._broker, channel, header)
        if config.has_batch_queues:
            remark = f"topic[{header.topic}] keeps batches (queue.type=BatchCQ), which can only be pulled"
            raise BrokerError(ResponseCode.INVALID_PARAMETER, remark)
        work = self._reader.pop(header, config, self._selection(header))
        return self._broker.turns.run((header.topic, header.consumer_group), if_connected(channel, work))

    def _check_numbers(self, header: PopMessageRequestHeader) -> None:
        broker, options = self._broker, self._broker.options
        ip = broker.advertised_ip
        if header.max_msg_nums > MOST_POPPED:
            remark = f"the broker[{ip}] pop message's num is greater than {MOST_POPPED}"
            raise BrokerError(ResponseCode.INVALID_PARAMETER, remark)
        if not options.timer_wheel_enable:
            remark = f"the broker[{ip}] pop message is forbidden because timerWheelEnable is false"
            raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
        if not header.order:
            check_invisible_time(broker, header.invisible_time)

    def _selection(self, header: PopMessageRequestHeader) -> Selection:
        """Return the selection by the pop's own expression; without one, everything, whatever its type says. Raises
        BrokerError.
        """
        if not header.exp:
            return EVERYTHING
        return expression_selection(self._broker, header.topic, header.consumer_group, header.exp, header.exp_type)

    def _found(self, command: RemotingCommand, header: PopMessageRequestHeader, popped: Popped) -> Answer:
        return when_durable(self._broker, self._answer(command, header, popped, ResponseCode.SUCCESS))

    @staticmethod
    def _answer(command: RemotingCommand, header: PopMessageRequestHeader, popped: Popped, code: int) -> bytes:
        head = _encode(
            command,
            code,
            "FOUND" if code == ResponseCode.SUCCESS else "NO_MESSAGE_IN_QUEUE",
            sum(map(len, popped.records)),
            pop_time=popped.pop_time,
            invisible_time=header.invisible_time,
            revive_qid=popped.revive_queue_id,
            rest_num=popped.rest,
            start_offset_info=join_infos(popped.starts),
            msg_offset_info=join_infos(popped.offsets),
            order_count_info=join_infos(popped.counts) if header.order else None,
        )
        return b"".join((head, *popped.records))


@attrs.frozen(eq=False)
class HeldPop:
    """A pop that waits."""

    processor: PopMessageProcessor
    channel: Channel
    command: RemotingCommand
    header: PopMessageRequestHeader
    born_ms: int
    tags_codes: Collection[int] | None

    @property
    def line(self) -> WaitingLine:
        """Return the line of the group on the queue, or on all queues."""
        return WaitingLine(WaitingKind.POP, self.header.topic, self.header.consumer_group, self.header.queue_id)

    @property
    def expires_ms(self) -> int:
        """Return the time when the poll time ends."""
        return self.born_ms + self.header.poll_time

    def attempt(self, last: bool) -> Answer:
        """Pop again."""
        return self.processor.again(self.channel, self.command, self.header, last)
