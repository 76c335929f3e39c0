"""Whether messages wait for a group, and who waits for them: codes 200054 (NOTIFICATION) and 200055 (POLLING_INFO).

Apache: NotificationProcessor, PollingInfoProcessor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twisted_mq.broker.pop.checks import check_broker, header_and_born_time, readable_topic, refused_with
from twisted_mq.broker.pop.held_requests import NotHeld
from twisted_mq.broker.pop.offsets import next_offset
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import NotificationRequestHeader, PollingInfoRequestHeader
from twisted_mq.protocol.names.pop_topics import pop_retry_topic
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, fast_header
from twisted_mq.remoting.channel import Answer, Channel

_NO_MESSAGE = {"hasMsg": "false", "pollingFull": "false"}
_NOBODY = {"pollingNum": "0"}


class NotificationProcessor:
    """Tells of messages without taking them; `processors` maps the request codes to it."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._read = fast_header(NotificationRequestHeader)
        self.processors = {
            RequestCode.NOTIFICATION: refused_with(_NO_MESSAGE, self.notify),
            RequestCode.POLLING_INFO: refused_with(_NOBODY, self.polling_info),
        }

    def notify(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Answer at once where a message waits, else when one arrives or the time is up."""
        broker = self._broker
        header, born_ms = header_and_born_time(NotificationRequestHeader, self._read, command, broker.now_ms())

        def look(last: bool) -> Answer:
            if self._has_message(channel, header):
                return command.answer(ext_fields={**_NO_MESSAGE, "hasMsg": "true"})
            return command.answer(ext_fields=dict(_NO_MESSAGE)) if last else None

        found = look(False)
        if found is not None:
            return found
        waiting = broker.pop.held_notifications.hold(header, born_ms, None, look, lambda: channel.connected_now)
        if isinstance(waiting, NotHeld):
            full = "true" if waiting is NotHeld.FULL else "false"
            return command.answer(ext_fields={**_NO_MESSAGE, "pollingFull": full})
        return waiting

    def polling_info(self, channel: Channel, command: RemotingCommand) -> Answer:
        """How many pops wait for a queue, or under the queue id -1 for all queues of the topic."""
        header = decode_header(PollingInfoRequestHeader, command)
        check_broker(self._broker)
        readable_topic(self._broker, channel, header)
        count = self._broker.pop.held_pops.count(header.topic, header.consumer_group, header.queue_id)
        return command.answer(ext_fields={"pollingNum": str(count)})

    def _has_message(self, channel: Channel, header: Any) -> bool:
        check_broker(self._broker)
        config = readable_topic(self._broker, channel, header)
        queues = range(config.read_queue_nums) if header.queue_id < 0 else (header.queue_id,)
        if any(self._waits_in(header, header.topic, queue_id) for queue_id in queues):
            return True
        return any(self._waits_in(header, topic, queue_id) for topic, queue_id in self._retried(header))

    def _retried(self, header: Any) -> Iterator[tuple[str, int]]:
        """Queues of the retry topics that a pop reads."""
        broker, options = self._broker, self._broker.options
        version_2 = options.enable_retry_topic_v2
        versions = [version_2, False] if version_2 and options.retrieve_message_from_pop_retry_topic_v1 else [version_2]
        for version in versions:
            topic = pop_retry_topic(header.topic, header.consumer_group, version)
            config = broker.topics.get(topic)
            for queue_id in range(config.read_queue_nums if config is not None else 0):
                yield topic, queue_id

    def _waits_in(self, header: Any, topic: str, queue_id: int) -> bool:
        broker, group = self._broker, header.consumer_group
        if header.order and broker.pop.orders.blocks(header.attempt_id, header.topic, group, queue_id, 0):
            return False
        return bool(broker.store.max_offset_in_queue(topic, queue_id) > next_offset(broker, topic, group, queue_id))
