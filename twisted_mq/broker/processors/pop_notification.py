"""Reports whether messages wait for a group, and how many pops wait for messages: codes 200054 (NOTIFICATION) and 200055
(POLLING_INFO).

Apache: NotificationProcessor, PollingInfoProcessor.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import attrs
from twisted.internet import defer

from twisted_mq.broker.pop.checks import check_broker, header_and_born_time, readable_topic, refused_with
from twisted_mq.broker.pop.held import NotHeld, after, hold
from twisted_mq.broker.pop.offsets import next_offset
from twisted_mq.broker.pop.order_manager import ConsumerOrderManager
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.reader import SLICE_QUEUES
from twisted_mq.broker.waiting_requests import WaitingKind, WaitingLine
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
    NotificationRequestHeader,
    NotificationResponseHeader,
    PollingInfoRequestHeader,
    PollingInfoResponseHeader,
)
from twisted_mq.protocol.names.pop_topics import pop_retry_topic
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header, fast_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import Work, while_connected

_NO_MESSAGE = encode_header(NotificationResponseHeader(has_msg=False))
_NOBODY = encode_header(PollingInfoResponseHeader(polling_num=0))


class NotificationProcessor:
    """Reports messages without taking them. `processors` maps the request codes to it."""

    def __init__(self, broker: PopParts, orders: ConsumerOrderManager) -> None:
        self._broker = broker
        self._orders = orders
        self._read = fast_header(NotificationRequestHeader)
        self.processors = {
            RequestCode.NOTIFICATION: refused_with(_NO_MESSAGE, self.notify),
            RequestCode.POLLING_INFO: refused_with(_NOBODY, self.polling_info),
        }

    def notify(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Answer at once if a message waits, otherwise when one arrives or the time is up."""
        broker = self._broker
        header, born_ms = header_and_born_time(NotificationRequestHeader, self._read, command, broker)
        found = self._has_message(channel, header)
        if isinstance(found, defer.Deferred):
            return after(found, lambda found: self._told_or_held(channel, command, header, born_ms, found))
        return self._told_or_held(channel, command, header, born_ms, found)

    def _told_or_held(
        self, channel: Channel, command: RemotingCommand, header: NotificationRequestHeader, born_ms: int, found: bool
    ) -> Answer:
        if found:
            return _told(command, found)
        broker = self._broker
        waiting = hold(broker, HeldNotification(self, channel, command, header, born_ms), header.poll_time)
        if isinstance(waiting, NotHeld):
            refused = NotificationResponseHeader(has_msg=False, polling_full=waiting is NotHeld.FULL)
            return command.answer(ext_fields=encode_header(refused))
        return waiting

    def look(
        self, channel: Channel, command: RemotingCommand, header: NotificationRequestHeader, *, last: bool
    ) -> Answer:
        """Answer if a message waits. Otherwise return None, or on the last look the answer that no message waits.

        A look into so many queues that it takes several turns is the last one.
        """
        found = self._has_message(channel, header)
        if isinstance(found, defer.Deferred):
            return after(found, lambda found: _told(command, found))
        return _told(command, found) if found or last else None

    def polling_info(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return how many pops wait for a queue; queue id -1 means all queues of the topic."""
        header = decode_header(PollingInfoRequestHeader, command)
        check_broker(self._broker)
        readable_topic(self._broker, channel, header)
        line = WaitingLine(WaitingKind.POP, header.topic, header.consumer_group, header.queue_id)
        count = self._broker.polling.length(line)
        return command.answer(ext_fields=encode_header(PollingInfoResponseHeader(polling_num=count)))

    def _has_message(self, channel: Channel, header: NotificationRequestHeader) -> bool | defer.Deferred[bool]:
        check_broker(self._broker)
        config = readable_topic(self._broker, channel, header)
        queues = range(config.read_queue_nums) if header.queue_id < 0 else (header.queue_id,)
        work = while_connected(channel, self._looked_for(header, queues))
        return self._broker.turns.run((header.topic, header.consumer_group), work)

    def _looked_for(self, header: NotificationRequestHeader, queues: Iterable[int]) -> Work[bool]:
        """Return True if a message waits in one of these queues, or in those of the retry topics."""
        own = ((header.topic, queue_id) for queue_id in queues)
        for looked, (topic, queue_id) in enumerate(itertools.chain(own, self._retried(header)), 1):
            if self._waits_in(header, topic, queue_id):
                return True
            if looked % SLICE_QUEUES == 0:
                yield None
        return False

    def _retried(self, header: NotificationRequestHeader) -> Iterator[tuple[str, int]]:
        """Yield the queues of the retry topics that a pop reads."""
        broker, options = self._broker, self._broker.options
        version_2 = options.enable_retry_topic_v2
        versions = [version_2, False] if version_2 and options.retrieve_message_from_pop_retry_topic_v1 else [version_2]
        for version in versions:
            topic = pop_retry_topic(header.topic, header.consumer_group, version)
            config = broker.topics.get(topic)
            for queue_id in range(config.read_queue_nums if config is not None else 0):
                yield topic, queue_id

    def _waits_in(self, header: NotificationRequestHeader, topic: str, queue_id: int) -> bool:
        broker, group = self._broker, header.consumer_group
        if header.order and self._orders.blocks(header.attempt_id, header.topic, group, queue_id, 0):
            return False
        return broker.store.max_offset_in_queue(topic, queue_id) > next_offset(broker, topic, group, queue_id)


def _told(command: RemotingCommand, found: bool) -> RemotingCommand:
    return command.answer(ext_fields=encode_header(NotificationResponseHeader(has_msg=found)))


@attrs.frozen(eq=False)
class HeldNotification:
    """A notification request that waits; any message answers it."""

    processor: NotificationProcessor
    channel: Channel
    command: RemotingCommand
    header: NotificationRequestHeader
    born_ms: int
    tags_codes: None = None

    @property
    def line(self) -> WaitingLine:
        """Return the line of the group on the queue, or on all queues."""
        return WaitingLine(
            WaitingKind.NOTIFICATION, self.header.topic, self.header.consumer_group, self.header.queue_id
        )

    @property
    def expires_ms(self) -> int:
        """Return the time when the poll time ends."""
        return self.born_ms + self.header.poll_time

    def attempt(self, last: bool) -> Answer:
        """Look again."""
        return self.processor.look(self.channel, self.command, self.header, last=last)
