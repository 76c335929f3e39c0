"""Decides why a send is refused: before the put because of its topic, which is checked once and remembered, and after it
because of the store.

Apache: AbstractSendMessageProcessor.preSend, msgCheck, SendMessageProcessor.handlePutMessageResult.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TypeVar

import attrs
from twisted.internet import defer

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.topics.dead_letters import DEAD_LETTER_QUEUES
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PERM_WRITE, perm_text
from twisted_mq.protocol.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX, is_brokers_own
from twisted_mq.protocol.names.validation import topic_fault
from twisted_mq.protocol.remarks import FAQ, REJECTED
from twisted_mq.remoting.channel import Channel, Later
from twisted_mq.storage.interfaces import PutResult, PutStatus

SendHeader = SendMessageRequestHeader | SendMessageRequestHeaderV2
Outcome = TypeVar("Outcome")


@attrs.define(eq=False)
class SendTarget:
    """A topic that accepts sends: the result of its checks, valid until the topic table changes.

    `is_special` is true for retry topics and strictly ordered ones.
    """

    topic: str
    queue_limit: int = DEAD_LETTER_QUEUES
    write_queue_nums: int = DEAD_LETTER_QUEUES
    multi_tag: bool = False
    batch_queues: bool = False
    is_retry: bool = False
    order_mode: str | None = None
    is_new: bool = False
    """True while the topic is not on disk, or the name servers do not know it."""
    is_special: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.is_special = self.is_retry or self.is_new or self.order_mode is not None


@attrs.define(eq=False)
class WaitingSends:
    """Counts the sends of a broker that wait for its disk or its slaves, single and together (sendThreadPoolQueueCapacity)."""

    most: int
    count: int = 0

    @property
    def room(self) -> int:
        """Return how many more may wait."""
        return self.most - self.count

    def wait(self, answer: Later | defer.Deferred[int], count: int = 1) -> None:
        """Count so many sends until their answer is there, or is cancelled by a channel on which too much waits."""
        self.count += count

        def no_more(outcome: Outcome) -> Outcome:
            self.count -= count
            return outcome

        answer.addBoth(no_more)


class SendChecks:
    """Checks sends. `targets` are the topics that accept sends without further checks, without retry topics and new ones.

    `known` fires when all topics are on disk and the name servers know them. `waiting` counts the sends that wait.
    """

    def __init__(
        self,
        options: BrokerOptions,
        wall_ms: Callable[[], int],
        topics: TopicConfigManager,
        advertised_ip: str,
        known: Callable[[], defer.Deferred[None]],
    ) -> None:
        self.targets: dict[str, SendTarget] = {}
        self.waiting = WaitingSends(options.send_thread_pool_queue_capacity)
        self._options = options
        self._wall_ms = wall_ms
        self._topics = topics
        self._advertised_ip = advertised_ip
        self._known = known
        self._new: set[str] = set()
        topics.on_change.append(self.targets.clear)

    def target(self, channel: Channel, header: SendHeader) -> SendTarget:
        """Return the target of a send; create its topic if that is allowed. Raises BrokerError with Apache's codes and
        remarks.
        """
        topic, writable = header.topic, bool(self._options.broker_permission & PERM_WRITE)
        self._check_time()
        self.check_name(topic)
        config = self._topics.get(topic) or self._create_topic(header)
        if config.order and not writable:
            remark = f"the broker[{self._advertised_ip}] sending message is forbidden"
            raise BrokerError(ResponseCode.NO_PERMISSION, remark)
        queue_limit = max(config.write_queue_nums, config.read_queue_nums)
        if header.queue_id >= queue_limit:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER,
                f"request queueId[{header.queue_id}] is illegal, {_describe(config)} Producer: {channel.address}",
            )
        target = SendTarget(
            topic,
            queue_limit,
            config.write_queue_nums,
            multi_tag=config.topic_filter_type == "MULTI_TAG",
            batch_queues=config.has_batch_queues,
            is_retry=topic.startswith(RETRY_PREFIX),
            order_mode=config.order_mode,
            is_new=topic in self._new,
        )
        if not target.is_retry and not target.is_new:
            self.targets[topic] = target
        return target

    @staticmethod
    def check_name(topic: str) -> None:
        """Check the name of a topic. Raises BrokerError if it is invalid, or if only brokers write the topic."""
        fault = topic_fault(topic)
        if fault is not None:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, fault)
        if is_brokers_own(topic):
            raise BrokerError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")

    def when_known(self, topic: str) -> defer.Deferred[None]:
        """Fire when a new topic is on disk and the name servers know it, or did not answer in time.

        Fails with BrokerError if the topic cannot be written now.
        """
        return self._known().addCallback(lambda _: self._new.discard(topic))

    def _check_time(self) -> None:
        begin_ms = self._options.start_accept_send_request_time_stamp
        if self._wall_ms() < begin_ms:
            begin = datetime.datetime.fromtimestamp(begin_ms / 1000, datetime.UTC).astimezone()
            text = begin.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {text}")

    def _create_topic(self, header: SendHeader) -> TopicConfig:
        topics, name = self._topics, header.topic
        is_retry = name.startswith(RETRY_PREFIX)
        sys_flag = 0 if not header.unit_mode else 2 if is_retry else 1
        config = topics.create_by_default_topic(
            name, header.default_topic, header.default_topic_queue_nums, sys_flag, self._options
        )
        if config is None and is_retry:
            config = topics.create_for_group(name, 1, sys_flag)
        if config is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please!{FAQ}")
        self._new.add(name)
        self.when_known(name).addErrback(lambda _: None)  # the answer to this send reports it
        return config


def _describe(config: TopicConfig) -> str:
    """Return a topic as Apache's remarks print it (TopicConfig.toString)."""
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums},"
        f" writeQueueNums={config.write_queue_nums}, perm={perm_text(config.perm)},"
        f" topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag},"
        f" order={str(config.order).lower()}, attributes={{}}]"
    )


PROPERTIES_TOO_LONG = PutResult(PutStatus.PROPERTIES_SIZE_EXCEEDED)
"""Returned before the properties are parsed, which takes a second for some MiB."""


def not_stored(options: BrokerOptions, result: PutResult) -> BrokerError:
    """Return the refusal of what the store did not take; if the store takes nothing, the refusal says why."""
    illegal = (
        "the message is illegal, maybe msg body or properties length not matched."
        f" msg body length limit {options.max_message_size}B, msg properties length limit 32KB."
    )
    unavailable = (
        "service not available now. It may be caused by one of the following reasons: the broker's disk is full"
        f" [{options.store_path_root_dir}], messages are put to the slave, message store has been shut down, etc."
        f" This time: {result.shut.value if result.shut else 'unknown'}"
    )
    rows = {
        PutStatus.MESSAGE_ILLEGAL: (ResponseCode.MESSAGE_ILLEGAL, illegal),
        PutStatus.PROPERTIES_SIZE_EXCEEDED: (ResponseCode.MESSAGE_ILLEGAL, illegal),
        PutStatus.SERVICE_NOT_AVAILABLE: (ResponseCode.SERVICE_NOT_AVAILABLE, unavailable),
        PutStatus.OS_PAGE_CACHE_BUSY: (ResponseCode.SYSTEM_BUSY, REJECTED),
    }
    return BrokerError(*rows.get(result.status, (ResponseCode.SYSTEM_ERROR, result.status.name)))
