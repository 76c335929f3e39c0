"""Takes messages that a consumer could not process (36): to the group's retry topic after a delay, in the end to its dead
letters.

Apache: AbstractSendMessageProcessor.consumerSendMsgBack.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.named_records import NamedRecords
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.postpone import Postponement, PostponeRefused
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.topics.dead_letters import dead_letter_topic, most_times, subscription_group
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import SubscriptionGroupConfig
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PERM_WRITE
from twisted_mq.protocol.headers import ConsumerSendMsgBackRequestHeader
from twisted_mq.protocol.names.validation import retry_topic
from twisted_mq.protocol.remarks import REJECTED
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, PutStatus

FIRST_LEVEL = 3
"""The delay level of the first retry if the client leaves it to the broker; each further retry is one level longer."""


class SendBackParts(Protocol):
    """The parts of the broker that messages given back use."""

    options: BrokerOptions
    random: Random
    store: IMessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    postponement: Postponement
    statistics: BrokerStatistics
    durability: Durability
    advertised_ip: str


class SendBackProcessor:
    """Stores messages that a consumer could not process for a later retry."""

    log = Logger()

    def __init__(self, broker: SendBackParts, records: NamedRecords) -> None:
        self._broker = broker
        self._records = records
        self.processors = {RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back}

    def send_back(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Store a message for a retry. A delay level below 0 asks for a dead letter, 0 leaves the delay to the broker.

        For a group without retry queues, answer with success and store nothing: the group gave the message up.
        """
        header = decode_header(ConsumerSendMsgBackRequestHeader, command)
        group = subscription_group(self._broker.groups, header.group)
        self._check_broker()
        if group.retry_queue_nums <= 0:
            return command.answer()
        topic = self._retry_topic(header, group)
        return self._records.answer(
            channel,
            command,
            header.offset,
            lambda _, stored: self._give_back(command, header, group, topic, stored),
            actions=(Action.SUB,),
            missing="look message by offset failed",
        )

    def _give_back(
        self,
        command: RemotingCommand,
        header: ConsumerSendMsgBackRequestHeader,
        group: SubscriptionGroupConfig,
        topic: str,
        stored: StoredMessage,
    ) -> Answer:
        reconsumed = stored.head.reconsume_times
        dead = reconsumed >= most_times(group, command.version, header.max_reconsume_times) or header.delay_level < 0
        if dead:
            message = self._again(stored, dead_letter_topic(self._broker.topics, header.group), 0, level=0)
        else:
            queue_id = self._broker.random.randrange(group.retry_queue_nums)
            message = self._again(stored, topic, queue_id, level=header.delay_level or FIRST_LEVEL + reconsumed)
        self._put(header.group, message)
        if dead:
            owner = command.ext_fields.get("Owner")
            self._broker.statistics.count_dead_letter(owner, header.origin_topic, header.group)
            self.log.info(
                "dead letter: group={group} topic={topic} key={key} from={offset}",
                group=header.group, topic=header.origin_topic, key=stored.properties.get("UNIQ_KEY"), offset=header.offset,
            )  # fmt: skip
        return self._broker.durability.acknowledged(command.answer())

    def _check_broker(self) -> None:
        if not self._broker.options.broker_permission & PERM_WRITE:
            remark = f"the broker[{self._broker.advertised_ip}] sending message is forbidden"
            raise BrokerError(ResponseCode.NO_PERMISSION, remark)

    def _retry_topic(self, header: ConsumerSendMsgBackRequestHeader, group: SubscriptionGroupConfig) -> str:
        topic = retry_topic(header.group)
        sys_flag = 2 if header.unit_mode else 0
        config = self._broker.topics.create_for_group(topic, group.retry_queue_nums, sys_flag)
        if not config.perm & PERM_WRITE:
            raise BrokerError(ResponseCode.NO_PERMISSION, f"the topic[{topic}] sending message is forbidden")
        return topic

    @staticmethod
    def _again(stored: StoredMessage, topic: str, queue_id: int, *, level: int) -> InnerMessage:
        """Return the message with its original topic, its first id, and one more try."""
        properties = stored.properties
        properties.setdefault(PROPERTY_RETRY_TOPIC, stored.topic)
        properties.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, stored.message_id)
        properties[PROPERTY_WAIT_STORE_MSG_OK] = "false"
        properties[PROPERTY_DELAY_TIME_LEVEL] = str(level)
        return stored.copy_to(topic, queue_id, stored.head.reconsume_times + 1)

    def _put(self, group: str, message: InnerMessage) -> None:
        """Store and count a message to retry, also as given back on its original topic.

        Raises BrokerError with the name of the store's refusal, as Apache's remark has it.
        """
        try:
            waiting = self._broker.postponement.apply(message)
        except PostponeRefused as refused:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, refused.status) from refused
        result = self._broker.store.put_message(waiting)
        if result.status is PutStatus.OS_PAGE_CACHE_BUSY:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, REJECTED)
        if result.status is not PutStatus.PUT_OK:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, result.status.name)
        size, statistics = result.end_offset - result.physical_offset, self._broker.statistics
        statistics.count_put(waiting.topic, 1, size, queue_id=waiting.queue_id)
        statistics.sent_back[f"{message.property_map[PROPERTY_RETRY_TOPIC]}@{group}"].add(1, size)
