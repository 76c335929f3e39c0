"""Checks what a request about popping names: a topic and queue that may be read, and a group that may consume.

Apache: PopMessageProcessor, NotificationProcessor, PollingInfoProcessor, in the order of their checks and with their codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from twisted_mq.broker.long_polling import MOST_WAIT_MS
from twisted_mq.broker.pop.parts import ReadParts
from twisted_mq.broker.pop.revive_log import ReviveLog
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, HeaderError
from twisted_mq.protocol.flags import PERM_READ
from twisted_mq.protocol.headers import NotificationRequestHeader, PopMessageRequestHeader
from twisted_mq.protocol.remarks import FAQ
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel, Processor

BORN_TIME = "bornTime"


class OfQueue(Protocol):
    """A header that names a queue."""

    @property
    def topic(self) -> str: ...

    @property
    def queue_id(self) -> int: ...


class OfGroup(OfQueue, Protocol):
    """A header that names a queue and the group that reads it."""

    @property
    def consumer_group(self) -> str: ...


Polling = TypeVar("Polling", PopMessageRequestHeader, NotificationRequestHeader)


def check_broker(broker: ReadParts, what: str = "peeking message") -> None:
    """Raise BrokerError if the broker must not be read."""
    if not broker.options.broker_permission & PERM_READ:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the broker[{broker.advertised_ip}] {what} is forbidden")


def existing_topic(broker: ReadParts, topic: str) -> TopicConfig:
    """Return the topic's configuration. Raises BrokerError."""
    config = broker.topics.get(topic)
    if config is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please! {FAQ}")
    return config


def wrong_queue(channel: Channel, header: OfQueue, config: TopicConfig, code: int) -> BrokerError:
    """Return the refusal of a queue that the topic does not have."""
    return BrokerError(
        code,
        f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
        f" topicConfig.readQueueNums:[{config.read_queue_nums}] consumer:[/{channel.address}]",
    )


def readable_topic(broker: ReadParts, channel: Channel, header: OfGroup) -> TopicConfig:
    """Return the configuration of the header's topic after checking that topic and group may be read. Raises BrokerError.

    A queue id below 0 means all queues.
    """
    config = existing_topic(broker, header.topic)
    if not config.perm & PERM_READ:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the topic[{header.topic}] peeking message is forbidden")
    if config.order_mode is not None:
        remark = f"the topic[{header.topic}] is ordered: pull it with an OrderedConsumer, pops would break its order"
        raise BrokerError(ResponseCode.NO_PERMISSION, remark)
    if header.queue_id >= config.read_queue_nums:
        raise wrong_queue(channel, header, config, ResponseCode.INVALID_PARAMETER)
    group = broker.groups.find(header.consumer_group, channel.share_address)
    if group is None:
        remark = f"subscription group [{header.consumer_group}] does not exist, {FAQ}"
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if not group.consume_enable:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {header.consumer_group}")
    return config


def existing_queue(broker: ReadParts, channel: Channel, header: OfQueue) -> tuple[int, int]:
    """Return the first offset of the header's queue and the one after its last. Raises BrokerError."""
    config = existing_topic(broker, header.topic)
    if not 0 <= header.queue_id < config.read_queue_nums:
        raise wrong_queue(channel, header, config, ResponseCode.MESSAGE_ILLEGAL)
    store = broker.store
    return (
        store.min_offset_in_queue(header.topic, header.queue_id),
        store.max_offset_in_queue(header.topic, header.queue_id),
    )


def check_revive_queue(broker: ReadParts, revive_log: ReviveLog, queue_id: int) -> None:
    """Raise BrokerError for a queue that the revive log does not have; Apache's broker would create it."""
    count = broker.options.revive_queue_num
    if not 0 <= queue_id < count:
        remark = f"reviveQid[{queue_id}] is illegal, {revive_log.topic} has {count} queues"
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)


def check_invisible_time(broker: ReadParts, invisible_time: int) -> None:
    """Raise BrokerError for a time that the timer does not serve; Apache's broker would lose the message."""
    longest = broker.options.timer_max_delay_sec * 1000
    if not 0 <= invisible_time <= longest:
        remark = f"invisibleTime[{invisible_time}] is illegal, 0 to {longest} ms (timerMaxDelaySec)"
        raise BrokerError(ResponseCode.INVALID_PARAMETER, remark)


def refused_with(fields: Mapping[str, str], answer: Processor) -> Processor:
    """Return `answer` with these fields added to its refusals, as in Apache: those of a fresh response header."""

    def decide(channel: Channel, command: RemotingCommand) -> Answer:
        try:
            return answer(channel, command)
        except BrokerError as error:
            raise error.with_fields(fields) from error

    return decide


def header_and_born_time(
    header_class: type[Polling], read: Callable[[RemotingCommand], Polling], command: RemotingCommand, broker: ReadParts
) -> tuple[Polling, int]:
    """Return the header, and when its client made it, on the timers' clock. Raises HeaderError.

    That is now if the client does not say, or if its clock cannot be right.
    """
    wall_ms = broker.wall_ms()
    try:
        header = read(command)
    except HeaderError as error:
        if error.field != BORN_TIME or error.value is not None:
            raise
        fields = {**command.ext_fields, BORN_TIME: str(wall_ms)}
        header = decode_header(header_class, RemotingCommand(command.code, ext_fields=fields))
    age_ms = wall_ms - (header.born_time or wall_ms)
    return header, broker.now_ms() - (age_ms if 0 <= age_ms <= MOST_WAIT_MS else 0)
