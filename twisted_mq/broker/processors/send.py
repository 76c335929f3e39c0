"""Sends: codes 10 (SEND_MESSAGE), 310 (its one-letter form) and 320 (batch). Apache: SendMessageProcessor.

This is the broker's hottest path: a topic's checks are done once and kept in a `SendTarget`, the answer to a plain
send is made from a template, and nothing waits unless durability was asked for.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from typing import Any

import attrs
import msgspec
from twisted.internet import defer

from twisted_mq.broker.processors.batch import batch_messages, check_inner_number, inner_batch
from twisted_mq.broker.processors.send_answer import SendAnswers
from twisted_mq.broker.remarks import FAQ, OVERLOAD
from twisted_mq.broker.schedule.postpone import POSTPONING
from twisted_mq.broker.topics.dead_letters import DEAD_LETTER_QUEUES, dead_letter_topic, most_times, subscription_group
from twisted_mq.broker.transaction.half_messages import is_half
from twisted_mq.config.values import value_text
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PERM_WRITE
from twisted_mq.protocol.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.names.recall_handle import handle_of
from twisted_mq.protocol.names.system_topics import HALF_TOPIC, NOT_ALLOWED_SEND_TOPICS, RETRY_PREFIX
from twisted_mq.protocol.names.validation import topic_fault
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.text.properties import decode_properties, delete_property
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.remoting.channel import REJECTED, Answer, Channel
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus

UNUSUAL = POSTPONING | {"TRAN_MSG", "POP_CK", "CLUSTER", "INNER_NUM"}
"""Properties that a plain message does not have: those of clients that wait, and those that the broker sets itself."""


Sent = Callable[[RemotingCommand, InnerMessage, PutResult, int], bytes]


@attrs.define(eq=False)
class SendTarget:
    """A topic that may be sent to: what the checks found, valid until the topic table changes."""

    topic: str
    queue_limit: int = DEAD_LETTER_QUEUES
    write_queue_nums: int = DEAD_LETTER_QUEUES
    multi_tag: bool = False
    batch_queues: bool = False


class SendMessageProcessor:
    """Takes messages into the store; `processors` maps the request codes to it."""

    log = Logger()

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._timed_put = broker.timed_put
        self._targets: dict[str, SendTarget] = {}
        self._read_v2 = fast_header(SendMessageRequestHeaderV2)
        self._read_v1 = fast_header(SendMessageRequestHeader)
        options = broker.options
        region, trace = options.region_id, value_text(options.trace_on)
        self._suffix = {"CLUSTER": options.broker_cluster_name, "MSG_REGION": region, "TRACE_ON": trace}
        self._suffix_text = "".join(f"{name}\x01{value}\x02" for name, value in self._suffix.items())
        self._answers = SendAnswers(broker.store_host, region, trace_on=options.trace_on)
        self._durability = broker.durability
        self._has_to_wait = broker.durability.waits
        self._waiting_sends = 0
        self._most_waiting_sends = options.send_thread_pool_queue_capacity
        broker.topics.on_change.append(self._targets.clear)
        self.processors = {
            RequestCode.SEND_MESSAGE: self.send_v1,
            RequestCode.SEND_MESSAGE_V2: self.send_v2,
            RequestCode.SEND_BATCH_MESSAGE: self.send_v2,
        }

    def send_v2(self, channel: Channel, command: RemotingCommand) -> Answer:
        """A request with the one-letter header."""
        return self._send(channel, command, self._read_v2(command))

    def send_v1(self, channel: Channel, command: RemotingCommand) -> Answer:
        """A request with the full header."""
        return self._send(channel, command, self._read_v1(command))

    def _send(self, channel: Channel, command: RemotingCommand, header: Any) -> Answer:
        if self._waiting_sends >= self._most_waiting_sends:
            return self._answers.refusal(command, BrokerError(ResponseCode.SYSTEM_BUSY, OVERLOAD))
        target = self._targets.get(header.topic)
        queue_id = header.queue_id
        if target is None or queue_id >= target.queue_limit:
            try:
                target = self._target(channel, header)
            except BrokerError as error:
                return self._answers.refusal(command, error)
            if target.topic.startswith(RETRY_PREFIX) and not header.batch:
                return self._send_retry(channel, command, header, target)
        if queue_id < 0:
            queue_id = self._broker.random.randrange(target.write_queue_nums or 1)
        if header.batch:
            return self._send_batch(channel, command, header, target, queue_id)
        try:
            message = self._message(channel, command, header, target, queue_id)
        except BrokerError as error:
            return self._answers.refusal(command, error)
        result = self._timed_put.call(message)
        if message.topic is not target.topic:
            return self._stored_elsewhere(command, message, result, queue_id)
        return self._stored(command, message, result)

    def _send_retry(self, channel: Channel, command: RemotingCommand, header: Any, target: SendTarget) -> Answer:
        """A message for a retry topic: what was tried too often goes to the dead letters.

        So does what a group gives back that consumes in order: waiting would break its order.
        """
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = self._broker.random.randrange(target.write_queue_nums or 1)
        try:
            if self._is_dead(command, header):
                target = SendTarget(dead_letter_topic(self._broker.topics, header.topic[len(RETRY_PREFIX) :]))
                text = delete_property(header.properties or "", "DELAY")
                header = msgspec.structs.replace(header, properties=f"{text}{_end(text)}DELAY\x01-1\x02")
                message = self._message(channel, command, header, target, 0)
            else:
                message = self._message(channel, command, header, target, queue_id)
        except BrokerError as error:
            return self._answers.refusal(command, error)
        return self._stored_elsewhere(command, message, self._timed_put.call(message), queue_id)

    def _is_dead(self, command: RemotingCommand, header: Any) -> bool:
        broker, name = self._broker, header.topic[len(RETRY_PREFIX) :]
        group = subscription_group(broker.groups, name)
        most = most_times(group, command.version, header.max_reconsume_times)
        tried_too_often = (header.reconsume_times or 0) > most
        return tried_too_often or not broker.locks.is_all_expired(name, broker.now_ms())

    def _message(
        self, channel: Channel, command: RemotingCommand, header: Any, target: SendTarget, queue_id: int
    ) -> InnerMessage:
        """The message with the properties that the broker adds. Raises BrokerError."""
        text = header.properties or ""
        try:
            properties = dict([part.split("\x01", 1) for part in text.split("\x02") if part])
        except ValueError:
            properties = decode_properties(text)
        text += _end(text)
        unusual = not UNUSUAL.isdisjoint(properties)
        if unusual:
            check_inner_number(properties, header.sys_flag, command.body)
            text = self._cleaned(text, properties)
        if not properties.get("UNIQ_KEY"):
            properties["UNIQ_KEY"] = key = self._broker.unique_keys.make()
            text += f"UNIQ_KEY\x01{key}\x02"
        if not command.body:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "body: a message needs at least one byte, got none")
        tags = properties.get("TAGS")
        message = InnerMessage(
            target.topic,
            queue_id,
            command.body,
            (text + self._suffix_text).encode(),
            properties,
            tags_code(tags) if tags else 0,
            header.flag,
            header.sys_flag | 2 if target.multi_tag else header.sys_flag,
            header.born_timestamp,
            channel.born_host or self._born_host(channel),
            header.reconsume_times or 0,
        )
        return self._put_aside(message) if unusual else message

    def _put_aside(self, message: InnerMessage) -> InnerMessage:
        """The same message where it waits for its time or its transaction, if it has to. Raises BrokerError."""
        if is_half(message.property_map, message.reconsume_times):
            return self._broker.transactions.prepare(message)  # type: ignore[no-any-return]
        return self._broker.postponement.apply(message)  # type: ignore[no-any-return]

    def _cleaned(self, text: str, properties: dict[str, str]) -> str:
        """Without what the broker sets itself."""
        for name in ("POP_CK", *self._suffix):
            if properties.pop(name, None) is not None:
                text = delete_property(text, name)
        return text

    @staticmethod
    def _born_host(channel: Channel) -> bytes:
        channel.born_host = pack_host(*channel.remote_address)
        return channel.born_host

    def _stored(
        self, command: RemotingCommand, message: InnerMessage, result: PutResult, sent: Sent | None = None
    ) -> Answer:
        """The answer to a put, now or when it is as durable as declared; `sent` encodes it."""
        statistics = self._broker.statistics
        if result.status is not PutStatus.PUT_OK:
            statistics.put_failed += 1
            return self._answers.refusal(command, self._put_failure(result))
        count, size = result.message_count, result.end_offset - result.physical_offset
        puts = statistics.puts[message.topic]
        puts.messages += count
        puts.bytes += size
        puts.times += 1
        by_queue = statistics.queue_puts[message.topic][message.queue_id]
        by_queue.messages += count
        by_queue.bytes += size
        by_queue.times += 1
        if self._has_to_wait and message.property_map.get("WAIT") != "false":
            return self._when_durable(command, message, result, sent or self._answers.sent)
        return (sent or self._answers.sent)(command, message, result, ResponseCode.SUCCESS)

    def _stored_elsewhere(
        self, command: RemotingCommand, message: InnerMessage, result: PutResult, queue_id: int
    ) -> Answer:
        """The answer for a message that waits or is dead: it names the queue that was asked for."""
        if message.topic is HALF_TOPIC and result.status is PutStatus.PUT_OK:
            self._broker.transactions.prepared(message)
        handle = handle_of(message.property_map, self._broker.options.broker_name)
        sent = functools.partial(self._answers.sent, queue_id=queue_id, recall_handle=handle)
        return self._stored(command, message, result, sent)

    def _when_durable(self, command: RemotingCommand, message: InnerMessage, result: PutResult, sent: Sent) -> Answer:
        self._waiting_sends += 1
        waiting: defer.Deferred[int] = self._durability.reached(result.end_offset)
        return waiting.addCallback(self._durable, command, message, result, sent)

    def _durable(
        self, code: int, command: RemotingCommand, message: InnerMessage, result: PutResult, sent: Sent
    ) -> Answer:
        self._waiting_sends -= 1
        by_queue = self._broker.statistics.queue_puts[message.topic][message.queue_id]
        by_queue.elapsed_ms += self._broker.now_ms() - result.store_timestamp
        return sent(command, message, result, code)

    def _put_failure(self, result: PutResult) -> BrokerError:
        options, status = self._broker.options, result.status
        illegal = (
            "the message is illegal, maybe msg body or properties length not matched."
            f" msg body length limit {options.max_message_size}B, msg properties length limit 32KB."
        )
        rows = {
            PutStatus.MESSAGE_ILLEGAL: (ResponseCode.MESSAGE_ILLEGAL, illegal),
            PutStatus.PROPERTIES_SIZE_EXCEEDED: (ResponseCode.MESSAGE_ILLEGAL, illegal),
            PutStatus.SERVICE_NOT_AVAILABLE: (
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now. It may be caused by one of the following reasons: the broker's disk is full"
                f" [{options.store_path_root_dir}], messages are put to the slave, message store has been shut down, etc."
                f" This time: {result.shut.value if result.shut else 'unknown'}",
            ),
            PutStatus.OS_PAGE_CACHE_BUSY: (ResponseCode.SYSTEM_BUSY, REJECTED),
        }
        return BrokerError(*rows.get(status, (ResponseCode.SYSTEM_ERROR, status.name)))

    # batches

    def _send_batch(
        self, channel: Channel, command: RemotingCommand, header: Any, target: SendTarget, queue_id: int
    ) -> Answer:
        """All messages of one encoded batch, stored back to back, all or none."""
        if target.topic.startswith(RETRY_PREFIX):
            remark = f"batch request does not support retry group {target.topic}"
            return self._answers.refusal(command, BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark))
        shared = decode_properties(header.properties or "")
        pattern = InnerMessage(
            target.topic,
            queue_id,
            b"",
            b"",
            shared,
            0,
            sys_flag=header.sys_flag | 2 if target.multi_tag else header.sys_flag,
            born_timestamp=header.born_timestamp,
            born_host=channel.born_host or self._born_host(channel),
            reconsume_times=header.reconsume_times or 0,
        )
        own = {name: value for name, value in shared.items() if name not in self._suffix}
        if target.batch_queues and own.get("UNIQ_KEY"):
            return self._send_inner_batch(command, header, own, pattern)
        batch = batch_messages(command.body, own, self._suffix, pattern)
        if not len(batch):
            refusal = BrokerError(ResponseCode.MESSAGE_ILLEGAL, "body: a batch without a message")
            return self._answers.refusal(command, refusal)
        return self._stored(command, pattern, self._broker.store.put_messages(batch))

    def _send_inner_batch(
        self, command: RemotingCommand, header: Any, own: dict[str, str], pattern: InnerMessage
    ) -> Answer:
        """All messages in one record; the answer's batchUniqId tells the producer so."""
        try:
            message = inner_batch(command.body, own | self._suffix, header.flag, pattern)
        except BrokerError as error:
            return self._answers.refusal(command, error)
        sent = functools.partial(self._answers.sent, batch_uniq_id=own["UNIQ_KEY"])
        return self._stored(command, message, self._timed_put.call(message), sent)

    # checks of a topic, done once until the table changes

    def _target(self, channel: Channel, header: Any) -> SendTarget:
        """The checks of Apache's preSend and msgCheck. Raises BrokerError with its codes and remarks."""
        broker, topic = self._broker, header.topic
        begin_ms = broker.options.start_accept_send_request_time_stamp
        if broker.now_ms() < begin_ms:
            begin = (
                datetime.datetime.fromtimestamp(begin_ms / 1000, datetime.UTC)
                .astimezone()
                .strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
            )
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {begin}")
        fault = topic_fault(topic)
        if fault is not None:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, fault)
        if topic in NOT_ALLOWED_SEND_TOPICS:
            raise BrokerError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
        config = broker.topics.get(topic) or self._create_topic(header)
        if not broker.options.broker_permission & PERM_WRITE and config.order:
            raise BrokerError(
                ResponseCode.NO_PERMISSION, f"the broker[{broker.advertised_ip}] sending message is forbidden"
            )
        queue_limit = max(config.write_queue_nums, config.read_queue_nums)
        if header.queue_id >= queue_limit:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER,
                f"request queueId[{header.queue_id}] is illegal, {describe_topic(config)} Producer: {channel.address}",
            )
        multi_tag = config.topic_filter_type == "MULTI_TAG"
        target = SendTarget(topic, queue_limit, config.write_queue_nums, multi_tag, config.has_batch_queues)
        may_write = broker.options.broker_permission & PERM_WRITE or not config.order
        if may_write and not topic.startswith(RETRY_PREFIX):
            self._targets[topic] = target
        return target

    def _create_topic(self, header: Any) -> Any:
        topics, options = self._broker.topics, self._broker.options
        is_retry = header.topic.startswith(RETRY_PREFIX)
        sys_flag = 0 if not header.unit_mode else 2 if is_retry else 1
        config = topics.create_by_default_topic(
            header.topic, header.default_topic, header.default_topic_queue_nums, sys_flag, options
        )
        if config is None and is_retry:
            config = topics.create_for_group(header.topic, 1, sys_flag)
        if config is None:
            raise BrokerError(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please!{FAQ}"
            )
        return config


def _end(text: str) -> str:
    """What the text form of properties needs before another one is appended."""
    return "\x02" if text and text[-1] != "\x02" else ""


def describe_topic(config: Any) -> str:
    """A topic as Apache's remarks print it (TopicConfig.toString)."""
    perm = "".join(letter if config.perm & bit else "-" for bit, letter in ((4, "R"), (2, "W"), (1, "X")))
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums},"
        f" writeQueueNums={config.write_queue_nums}, perm={perm}, topicFilterType={config.topic_filter_type},"
        f" topicSysFlag={config.topic_sys_flag}, order={str(config.order).lower()}, attributes={{}}]"
    )
