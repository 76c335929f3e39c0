"""Pulls: codes 11 (PULL_MESSAGE) and 361 (LITE_PULL_MESSAGE). Apache: PullMessageProcessor, DefaultPullMessageResultHandler.

A pull that finds nothing and may wait is held by `PullRequestHoldService`. Found records leave as they lie in the log.
"""

from __future__ import annotations

from typing import Any

import msgspec

from twisted_mq.broker.filter.selection import Selection, group_selection, own_selection
from twisted_mq.broker.long_polling import HeldPull
from twisted_mq.broker.remarks import FAQ, OVERLOAD
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PERM_READ
from twisted_mq.protocol.headers import PullMessageRequestHeader, PullMessageResponseHeader
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import GetResult, GetStatus

FLAG_COMMIT_OFFSET, FLAG_SUSPEND, FLAG_SUBSCRIPTION = 1, 2, 4
BROKER_FORBIDDEN, GROUP_FORBIDDEN, TOPIC_FORBIDDEN, BROADCASTING_FORBIDDEN, SUBSCRIPTION_FORBIDDEN = 1, 2, 3, 4, 5
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
_MOVED_UNLESS_ZERO = (GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE)

_encode = answer_encoder(PullMessageResponseHeader)


class _Forbidden(BrokerError):
    """A refused pull whose answer says who forbids it."""

    def __init__(self, remark: str, forbidden_type: int) -> None:
        super().__init__(ResponseCode.NO_PERMISSION, remark)
        self.forbidden_type = forbidden_type


class PullMessageProcessor:
    """Hands messages out; `processors` maps the request codes to it."""

    log = Logger()

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._timed_get = broker.timed_get
        self._has_master = broker.options.broker_id != 0
        self._read = fast_header(PullMessageRequestHeader)
        self.processors = {RequestCode.PULL_MESSAGE: self.pull, RequestCode.LITE_PULL_MESSAGE: self.pull}

    def pull(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Answer at once, or hold the pull and answer when a message arrives or its time is up."""
        header = self._read(command)
        try:
            group, topic = self._check(channel, command, header)
            wanted = self._selection(header, group)
        except _Forbidden as error:
            fields = {"forbiddenType": str(error.forbidden_type)}
            return command.answer(error.response_code, error.remark, fields)
        if self._broker.offsets.resets:
            moved = self._reset(header)
            if moved is not None:
                return self._answer(command, header, group, topic, moved, self._code(header, moved))
        result = self._read_queue(header, wanted)
        code = self._code(header, result)
        if header.sys_flag & FLAG_COMMIT_OFFSET:
            self._broker.offsets.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        if code == ResponseCode.PULL_NOT_FOUND and header.sys_flag & FLAG_SUSPEND:
            return self._hold(channel, command, header, group, topic, wanted)
        return self._answer(command, header, group, topic, result, code)

    def _read_queue(self, header: Any, wanted: Selection) -> GetResult:
        """What there is now; what is found is counted, with the ms that it took."""
        broker = self._broker
        began = broker.clock.seconds()
        result: GetResult = self._timed_get.call(
            header.topic,
            header.queue_id,
            header.queue_offset,
            header.max_msg_nums,
            header.max_msg_bytes or DEFAULT_MAX_BYTES,
            wanted.tags_codes,
            wanted.matches,
        )
        if result.records:
            elapsed_ms = int((broker.clock.seconds() - began) * 1000)
            broker.statistics.count_get(
                header.topic, header.consumer_group, result.message_count or len(result.records), result.size_bytes,
                queue_id=header.queue_id, elapsed_ms=elapsed_ms,
            )  # fmt: skip
        return result

    def _reset(self, header: Any) -> GetResult | None:
        """The answer that sends a reader to the offset its group was given; None where it was given none."""
        topic, queue_id, store = header.topic, header.queue_id, self._broker.store
        offset = self._broker.offsets.take_reset(header.consumer_group, topic, queue_id)
        if offset is None:
            return None
        first, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
        return GetResult(GetStatus.OFFSET_RESET, offset, first, end)

    # waiting

    def _hold(
        self,
        channel: Channel,
        command: RemotingCommand,
        header: Any,
        group: Any,
        topic: Any,
        wanted: Selection,
    ) -> Answer:
        broker, options = self._broker, self._broker.options
        if len(broker.held_pulls) >= options.pull_thread_pool_queue_capacity:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, OVERLOAD)
        wait_ms = header.suspend_timeout_millis if options.long_polling_enable else options.short_polling_time_mills

        def read_again() -> Answer:
            result = self._reset(header) or self._read_queue(header, wanted)
            return self._answer(command, header, group, topic, result, self._code(header, result))

        def matching_arrived() -> bool:
            """What arrived and does not match is passed over, and not looked at again."""
            nonlocal header
            result = self._timed_get.call(
                header.topic, header.queue_id, header.queue_offset, 1, DEFAULT_MAX_BYTES, None, wanted.matches
            )
            if result.status is not GetStatus.NO_MATCHED_MESSAGE:
                return True
            header = msgspec.structs.replace(header, queue_offset=result.next_begin_offset)
            return False

        pull = HeldPull(
            header.queue_offset,
            wanted.tags_codes,
            broker.now_ms() + wait_ms,
            read_again,
            lambda: channel.connected_now,
            matching_arrived if wanted.matches is not None else None,
        )
        return broker.held_pulls.hold(header.topic, header.queue_id, pull)

    # answering

    def _code(self, header: Any, result: GetResult) -> int:
        if self._has_master and self._sends_to_master(result) and result.status is not GetStatus.FOUND:
            return ResponseCode.PULL_RETRY_IMMEDIATELY
        if header.queue_offset and result.status in _MOVED_UNLESS_ZERO:
            return ResponseCode.PULL_OFFSET_MOVED
        return CODES[result.status]

    def _answer(
        self, command: RemotingCommand, header: Any, group: Any, topic: Any, result: GetResult, code: int
    ) -> bytes:
        if code == ResponseCode.PULL_OFFSET_MOVED:
            self.log.info(
                "pull offset corrected: group={g} topic={t} queue={q} asked={a} next={n} status={s}",
                g=header.consumer_group, t=header.topic, q=header.queue_id, a=header.queue_offset,
                n=result.next_begin_offset, s=result.status.name,
            )  # fmt: skip
        self._count(header, result)
        head = _encode(
            command, code, result.status.name, result.size_bytes,
            suggest_which_broker_id=self._suggested_broker(group, result),
            next_begin_offset=result.next_begin_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            topic_sys_flag=topic.topic_sys_flag,
            group_sys_flag=group.group_sys_flag,
        )  # fmt: skip
        return b"".join((head, *result.records))

    def _count(self, header: Any, result: GetResult) -> None:
        broker = self._broker
        topic, group = header.topic, header.consumer_group
        if result.records:
            broker.offsets.note_pulled(group, topic, header.queue_id, result.next_begin_offset)
        else:
            broker.statistics.get_missed += 1

    def _suggested_broker(self, group: Any, result: GetResult) -> int:
        """Which broker of the group to pull from next: a slave when this one lags behind its memory and slaves serve reads."""
        if not self._broker.options.slave_read_enable:
            return 0
        if self._has_master and self._sends_to_master(result):
            return 0
        if result.suggest_pulling_from_slave:
            return int(group.which_broker_when_consume_slowly)
        return int(group.broker_id)

    def _sends_to_master(self, result: GetResult) -> bool:
        """A slave whose master is there keeps only readers that lag behind the master's memory."""
        return self._broker.min_broker_id == 0 and not result.suggest_pulling_from_slave

    # checks, in Apache's order and with its codes

    def _check(self, channel: Channel, command: RemotingCommand, header: Any) -> tuple[Any, Any]:
        broker, options = self._broker, self._broker.options
        if not options.broker_permission & PERM_READ:
            raise _Forbidden(f"the broker[{broker.advertised_ip}] pulling message is forbidden", BROKER_FORBIDDEN)
        if command.code == RequestCode.LITE_PULL_MESSAGE and not options.lite_pull_message_enable:
            raise _Forbidden(
                f"the broker[{broker.advertised_ip}] for lite pull consumer is forbidden", BROKER_FORBIDDEN
            )
        group = broker.groups.find(header.consumer_group)
        if group is None:
            raise BrokerError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{header.consumer_group}] does not exist, {FAQ}",
            )
        if not group.consume_enable:
            raise _Forbidden(f"subscription group no permission, {header.consumer_group}", GROUP_FORBIDDEN)
        topic = broker.topics.get(header.topic)
        if topic is None:
            raise BrokerError(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please! {FAQ}"
            )
        if not topic.perm & PERM_READ:
            raise _Forbidden(f"the topic[{header.topic}] pulling message is forbidden", TOPIC_FORBIDDEN)
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{channel.address}]",
            )
        return group, topic

    def _selection(self, header: Any, group: Any) -> Selection:
        """By the subscription that comes with the pull, or the group's from its heartbeats. Raises BrokerError."""
        if header.sys_flag & FLAG_SUBSCRIPTION:
            return own_selection(self._broker, header)
        info = self._broker.consumers.groups.get(header.consumer_group)
        if info is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{FAQ}")
        if info.message_model == "BROADCASTING" and not group.consume_broadcast_enable:
            raise _Forbidden(
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way", BROADCASTING_FORBIDDEN
            )
        if self._broker.groups.may_not_read(header.consumer_group, header.topic):
            raise _Forbidden(
                f"the consumer group[{header.consumer_group}] is forbidden for topic[{header.topic}]",
                SUBSCRIPTION_FORBIDDEN,
            )
        subscription = info.subscriptions.get(header.topic)
        if subscription is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist{FAQ}")
        if subscription.sub_version < header.sub_version:
            raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        return group_selection(self._broker, header, subscription)
