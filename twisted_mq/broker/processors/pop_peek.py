"""Shows the messages that a group would pop next, without taking them: code 200052 (PEEK_MESSAGE). Apache:
PeekMessageProcessor.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from twisted_mq.broker.pop.checks import check_broker, readable_topic, refused_with
from twisted_mq.broker.pop.offsets import next_offset
from twisted_mq.broker.pop.parts import ReadParts
from twisted_mq.broker.pop.reader import DEFAULT_MAX_BYTES, SLICE_QUEUES
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.headers import PeekMessageRequestHeader, PopMessageResponseHeader
from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.names.pop_topics import pop_retry_topic
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import GetStatus
from twisted_mq.turns import Work, then, while_connected

_NOTHING = PopMessageResponseHeader(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0)
_WRONG_OFFSET = (GetStatus.OFFSET_TOO_SMALL, GetStatus.OFFSET_OVERFLOW_BADLY)


class PeekMessageProcessor:
    """Shows messages; `processors` maps the request code to it."""

    def __init__(self, broker: ReadParts) -> None:
        self._broker = broker
        self.processors = {RequestCode.PEEK_MESSAGE: refused_with(encode_header(_NOTHING), self.peek)}

    def peek(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return up to `max_msg_nums` records as they are stored; `restNum` counts these too."""
        broker, header = self._broker, decode_header(PeekMessageRequestHeader, command)
        check_broker(broker)
        config = readable_topic(broker, channel, header)
        work = while_connected(channel, self._seen(header, config.read_queue_nums))
        seen = broker.turns.run((header.topic, header.consumer_group), work)
        return then(seen, lambda seen: self._answer(command, *seen))

    def _seen(self, header: PeekMessageRequestHeader, queues: int) -> Work[tuple[list[Buffer], int]]:
        """Return the records, and the number of all messages, including those that are not shown."""
        broker = self._broker
        records: list[Buffer] = []
        rest = 0
        for looked, (topic, queue_id) in enumerate(self._queues(header, queues), 1):
            offset = next_offset(broker, topic, header.consumer_group, queue_id)
            rest += broker.store.max_offset_in_queue(topic, queue_id) - offset
            room = header.max_msg_nums - len(records)
            if room > 0:
                records += self._read(header, topic, queue_id, offset, room)
            if looked % SLICE_QUEUES == 0:
                records = [bytes(record) for record in records]  # a mapped file may be unmapped meanwhile
                yield None
        return records, rest

    @staticmethod
    def _answer(command: RemotingCommand, records: list[Buffer], rest: int) -> RemotingCommand:
        fields = encode_header(attrs.evolve(_NOTHING, rest_num=rest))
        if not records:
            return command.answer(ResponseCode.PULL_NOT_FOUND, GetStatus.NO_MESSAGE_IN_QUEUE.name, fields)
        return command.answer(ResponseCode.SUCCESS, GetStatus.FOUND.name, fields, b"".join(records))

    def _queues(self, header: PeekMessageRequestHeader, count: int) -> Iterator[tuple[str, int]]:
        """Yield the queues in the order of a pop: at random, those of the retry topic come first."""
        broker, options = self._broker, self._broker.options
        chance = broker.random.randrange(100)
        retry_topic = pop_retry_topic(header.topic, header.consumer_group, options.enable_retry_topic_v2)
        config = broker.topics.get(retry_topic)
        retry_count = 0 if config is None else config.read_queue_nums
        retried = [(retry_topic, (chance + index) % retry_count) for index in range(retry_count)]
        queues = [header.queue_id] if header.queue_id >= 0 else [(chance + index) % count for index in range(count)]
        own = [(header.topic, queue_id) for queue_id in queues]
        yield from (*retried, *own) if chance % 5 == 0 else (*own, *retried)

    def _read(
        self, header: PeekMessageRequestHeader, topic: str, queue_id: int, offset: int, room: int
    ) -> list[memoryview | bytes]:
        broker = self._broker
        result = broker.store.get_message(topic, queue_id, offset, room, DEFAULT_MAX_BYTES, None)
        if result.status in _WRONG_OFFSET:
            offset = result.next_begin_offset
            result = broker.store.get_message(topic, queue_id, offset, room, DEFAULT_MAX_BYTES, None)
        found = result.records
        if found:
            group = header.consumer_group
            broker.statistics.count_get(header.topic, group, len(found), result.size_bytes, queue_id=queue_id)
        return found
