"""Serves pulls: codes 11 (PULL_MESSAGE) and 361 (LITE_PULL_MESSAGE). Apache: PullMessageProcessor,
DefaultPullMessageResultHandler.

`LongPolling` holds a pull that finds nothing and may wait. Records that are found are sent as they are in the log.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Protocol

import attrs
from twisted.internet import interfaces

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.cold_reads import ColdReads
from twisted_mq.broker.filter.selection import Selection
from twisted_mq.broker.long_polling import LongPolling
from twisted_mq.broker.ordered_topics import Ordering
from twisted_mq.broker.processors.pull_checks import CheckedParts, PullChecks
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.call_times import TimedCall
from twisted_mq.broker.waiting_requests import WaitingKind, WaitingLine
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig
from twisted_mq.protocol.bodies.types import PASSIVELY
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import PullMessageRequestHeader, PullMessageResponseHeader
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.remarks import OVERLOAD
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import GetResult, GetStatus, IMessageStore

FLAG_COMMIT_OFFSET, FLAG_SUSPEND = 1, 2
DEFAULT_MAX_BYTES = 2**31 - 1

CODES = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.NO_MATCHED_LOGIC_QUEUE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
_NOT_FOUND, _MOVED = int(ResponseCode.PULL_NOT_FOUND), int(ResponseCode.PULL_OFFSET_MOVED)
_MOVED_UNLESS_ZERO = (GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE)

_encode = answer_encoder(PullMessageResponseHeader)


class PullParts(CheckedParts, Protocol):
    """The parts of the broker that pulls use."""

    clock: interfaces.IReactorTime
    store: IMessageStore
    offsets: ConsumerOffsetManager
    statistics: BrokerStatistics
    timed_get: TimedCall[..., GetResult]
    polling: LongPolling
    ordering: Ordering
    cold_reads: ColdReads
    min_broker_id: int


class PullMessageProcessor:
    """Hands messages out; `processors` maps the request codes to it."""

    log = Logger()

    def __init__(self, broker: PullParts) -> None:
        self._broker = broker
        self._checks = PullChecks(broker)
        self._timed_get = broker.timed_get
        self._has_master = broker.options.broker_id != MASTER_ID
        self._read = fast_header(PullMessageRequestHeader)
        self.processors = {RequestCode.PULL_MESSAGE: self.pull, RequestCode.LITE_PULL_MESSAGE: self.pull}

    def pull(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Answer at once, or hold the pull and answer when a message arrives or its time is up."""
        header = self._read(command)
        group, topic = self._checks.check(channel, command, header)
        wanted = self._checks.selection(header, group)
        if self._broker.offsets.resets:
            moved = self._reset(header)
            if moved is not None:
                return self._answer(command, header, group, topic, moved, self._code(header.queue_offset, moved, topic))
        if topic.attributes and topic.order_mode is not None:
            result = self._read_ordered(header, header.queue_offset, wanted, topic)
        else:
            result = self._read_queue(header, header.queue_offset, wanted)
        if result.suggest_pulling_from_slave and self._broker.options.cold_data_flow_control_enable:
            self._count_cold(header.consumer_group, result)
        code = self._code(header.queue_offset, result, topic)
        if header.sys_flag & FLAG_COMMIT_OFFSET:
            self._commit(header, topic, command)
        if code == _NOT_FOUND and header.sys_flag & FLAG_SUSPEND:
            return self._hold(channel, command, header, group, topic, wanted)
        return self._answer(command, header, group, topic, result, code)

    def _commit(self, header: PullMessageRequestHeader, topic: TopicConfig, command: RemotingCommand) -> None:
        group, queue_id = header.consumer_group, header.queue_id
        offset = self._broker.ordering.noted(topic, queue_id, group, header.commit_offset, command.ext_fields)
        self._broker.offsets.commit(group, header.topic, queue_id, offset)

    def _read_queue(
        self, header: PullMessageRequestHeader, offset: int, wanted: Selection, *, joined: bool = True
    ) -> GetResult:
        """Read from an offset on, and count what is found, with the ms that it took; `joined` as in `get_message`."""
        broker = self._broker
        began = broker.clock.seconds()
        result = self._timed_get.call(
            header.topic,
            header.queue_id,
            offset,
            header.max_msg_nums,
            header.max_msg_bytes or DEFAULT_MAX_BYTES,
            wanted.tags_codes,
            wanted.matches,
            joined,
        )
        if result.records:
            elapsed_ms = int((broker.clock.seconds() - began) * 1000)
            broker.statistics.count_get(
                header.topic, header.consumer_group, result.message_count or len(result.records), result.size_bytes,
                queue_id=header.queue_id, elapsed_ms=elapsed_ms,
            )  # fmt: skip
        return result

    def _read_ordered(
        self, header: PullMessageRequestHeader, offset: int, wanted: Selection, topic: TopicConfig
    ) -> GetResult:
        """Read the messages that may be handed out now. Raises BrokerError."""
        reads = self._broker.ordering.asked(header.topic).reads
        read = functools.partial(self._read_queue, header, offset, wanted, joined=False)
        return reads.read(topic, header.queue_id, offset, header.consumer_group, read)

    def _reset(self, header: PullMessageRequestHeader) -> GetResult | None:
        """Return the answer that sends a consumer to the offset that its group was reset to; None without a reset."""
        topic, queue_id, store = header.topic, header.queue_id, self._broker.store
        offset = self._broker.offsets.take_reset(header.consumer_group, topic, queue_id)
        if offset is None:
            return None
        first, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
        return GetResult(GetStatus.OFFSET_RESET, offset, first, end)

    def _count_cold(self, group: str, result: GetResult) -> None:
        """Count a read of messages that are not in memory any more. Raises BrokerError if the group read too much of them."""
        info = self._broker.consumers.groups.get(group)
        pushed = info is None or info.consume_type == PASSIVELY
        self._broker.cold_reads.take(group, result.size_bytes, pushed=pushed)

    # waiting

    def _hold(
        self,
        channel: Channel,
        command: RemotingCommand,
        header: PullMessageRequestHeader,
        group: SubscriptionGroupConfig,
        topic: TopicConfig,
        wanted: Selection,
    ) -> Answer:
        broker, options = self._broker, self._broker.options
        wait_ms = header.suspend_timeout_millis if options.long_polling_enable else options.short_polling_time_mills
        expires_ms = broker.now_ms() + wait_ms
        pull = HeldPull(self, channel, command, header, group, topic, wanted, expires_ms)
        if not broker.polling.has_room(pull, options.pull_thread_pool_queue_capacity):
            raise BrokerError(ResponseCode.SYSTEM_BUSY, OVERLOAD)
        return broker.polling.hold(pull)

    def read_again(self, held: HeldPull, last: bool) -> bytes | None:
        """Answer a pull that waited with what there is now. On an ordered topic, only the last answer can be empty."""
        header, offset = held.header, held.offset
        result = self._reset(header) if self._broker.offsets.resets else None
        if result is None and held.topic.attributes and held.topic.order_mode is not None:
            result = self._read_ordered(header, offset, held.wanted, held.topic)
            if not last and CODES[result.status] == ResponseCode.PULL_NOT_FOUND:
                return None
        result = result or self._read_queue(header, offset, held.wanted)
        code = self._code(offset, result, held.topic)
        return self._answer(held.command, header, held.group, held.topic, result, code)

    def first_match(self, held: HeldPull) -> GetResult:
        """Read up to the first message that matches the pull's expression."""
        header, wanted = held.header, held.wanted
        return self._timed_get.call(
            header.topic, header.queue_id, held.offset, 1, DEFAULT_MAX_BYTES, None, wanted.matches
        )

    # answering

    def _code(self, offset: int, result: GetResult, topic: TopicConfig) -> int:
        """Return the answer's code. `offset` is the offset that was read.

        On an ordered topic, clients pull from a slave only if they have to, so they are not sent to the master.
        """
        is_left_to_master = self._has_master and topic.order_mode is None and self._sends_to_master(result)
        if is_left_to_master and result.status is not GetStatus.FOUND:
            return ResponseCode.PULL_RETRY_IMMEDIATELY
        if offset and result.status in _MOVED_UNLESS_ZERO:
            return ResponseCode.PULL_OFFSET_MOVED
        return CODES[result.status]

    def _answer(
        self,
        command: RemotingCommand,
        header: PullMessageRequestHeader,
        group: SubscriptionGroupConfig,
        topic: TopicConfig,
        result: GetResult,
        code: int,
    ) -> bytes:
        if code == _MOVED:
            self.log.info(
                "pull offset corrected: group={g} topic={t} queue={q} asked={a} next={n} status={s}",
                g=header.consumer_group, t=header.topic, q=header.queue_id, a=header.queue_offset,
                n=result.next_begin_offset, s=result.status.name,
            )  # fmt: skip
        self._count(header, result)
        head = _encode(
            command, code, result.status._name_, result.size_bytes,
            suggest_which_broker_id=self._suggested_broker(group, result),
            next_begin_offset=result.next_begin_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            topic_sys_flag=topic.topic_sys_flag,
            group_sys_flag=group.group_sys_flag,
        )  # fmt: skip
        return b"".join((head, *result.records))

    def _count(self, header: PullMessageRequestHeader, result: GetResult) -> None:
        broker = self._broker
        topic, group = header.topic, header.consumer_group
        if result.records:
            broker.offsets.note_pulled(group, topic, header.queue_id, result.next_begin_offset)
        else:
            broker.statistics.get_missed += 1

    def _suggested_broker(self, group: SubscriptionGroupConfig, result: GetResult) -> int:
        """Return the broker of the group to pull from next: a slave if this consumer lags behind memory and slaves serve
        reads.
        """
        if not self._broker.options.slave_read_enable:
            return 0
        if self._has_master and self._sends_to_master(result):
            return 0
        if result.suggest_pulling_from_slave:
            return group.which_broker_when_consume_slowly
        return group.broker_id

    def _sends_to_master(self, result: GetResult) -> bool:
        """Return True if a slave sends the reader to its master: the master is there and still has the messages in memory."""
        return self._broker.min_broker_id == 0 and not result.suggest_pulling_from_slave


@attrs.define(eq=False)
class HeldPull:
    """A pull that waits. `offset` moves past messages that arrived and do not match, so that they are read only once."""

    processor: PullMessageProcessor
    channel: Channel
    command: RemotingCommand
    header: PullMessageRequestHeader
    group: SubscriptionGroupConfig
    topic: TopicConfig
    wanted: Selection
    expires_ms: int
    line: WaitingLine = attrs.field(init=False)
    """The line of all pulls that wait at the queue."""
    offset: int = attrs.field(init=False)
    tags_codes: Collection[int] | None = attrs.field(init=False)
    """The codes of messages that can match; None for any."""

    def __attrs_post_init__(self) -> None:
        self.line = WaitingLine(WaitingKind.PULL, self.header.topic, "", self.header.queue_id)
        self.offset = self.header.queue_offset
        self.tags_codes = self.wanted.tags_codes

    def attempt(self, last: bool) -> Answer:
        """Read again, unless no message arrived that the expression matches."""
        if not last and self.wanted.matches is not None:
            first = self.processor.first_match(self)
            if first.status is GetStatus.NO_MATCHED_MESSAGE:
                self.offset = first.next_begin_offset
                return None
        return self.processor.read_again(self, last)
