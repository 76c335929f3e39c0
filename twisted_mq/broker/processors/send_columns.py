"""Stores sends whose headers have the same shape, many at a time: common parts are checked and made once, see
protocol.wire.shapes.

This is the quick form of `SendMessageProcessor` for plain messages to topics that are neither new nor special, and for those
that wait as most do (`send_aside`). Sends that it does not take go to the processor as commands. A test checks that answers,
log and queues of both are equal, byte for byte.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import attrs
from twisted.internet import defer

from twisted_mq.access.guard import Guard, Named
from twisted_mq.broker.processors.send import SendAnswers, brokers_properties
from twisted_mq.broker.processors.send_aside import ASIDE, Aside, Asides, Sends, Texts, Waiting, time_of
from twisted_mq.broker.processors.send_checks import SendChecks, SendHeader, SendTarget
from twisted_mq.broker.processors.send_parts import SendParts
from twisted_mq.broker.processors.send_postponed import UNUSUAL
from twisted_mq.broker.statistics.distributions import SIZE_LIMITS
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.flags import (
    INNER_BATCH,
    OUT_OF_QUEUES,
    MessageSysFlag,
    reset_transaction_value,
    without_commit,
)
from twisted_mq.protocol.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.record import V6_FLAGS
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.text.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    decode_properties,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.protocol.wire.sent_answers import SentAnswers
from twisted_mq.protocol.wire.shapes import (
    OPAQUE_PART,
    Columns,
    Family,
    Streak,
    Varying,
    are_opaques,
    are_plain,
    around_values,
    numbers_of,
)
from twisted_mq.protocol.wire.signature import SIGNATURE, SignedColumns, signed_columns
from twisted_mq.remoting.channel import Channel
from twisted_mq.storage.interfaces import Places, PlainMessages

_FIXED = frozenset({PROPERTY_WAIT_STORE_MSG_OK, PROPERTY_TRANSACTION_PREPARED})
_UNUSUAL = UNUSUAL - ASIDE
VARYING = {
    int(RequestCode.SEND_MESSAGE): Varying(
        ("queueId", "bornTimestamp"), "properties", _UNUSUAL, _FIXED, ("topic", SIGNATURE)
    ),
    int(RequestCode.SEND_MESSAGE_V2): Varying(("e", "g"), "i", _UNUSUAL, _FIXED, ("b", SIGNATURE)),
}
"""The varying fields in the sends of each code: the queue, the time, properties, topic and signature."""
READERS: dict[int, Callable[[RemotingCommand], SendHeader]] = {
    int(RequestCode.SEND_MESSAGE): fast_header(SendMessageRequestHeader),
    int(RequestCode.SEND_MESSAGE_V2): fast_header(SendMessageRequestHeaderV2),
}
_UNUSUAL_FLAGS = V6_FLAGS | INNER_BATCH | OUT_OF_QUEUES
_NO_WAIT = f"{PROPERTY_WAIT_STORE_MSG_OK}{NAME_VALUE_SEPARATOR}false"
_SUCCESS = int(ResponseCode.SUCCESS)
Targets: TypeAlias = dict[bytes, SendTarget]
"""The plain topics of some sends, by their names in the requests."""


@attrs.define(eq=False)
class SendPattern:
    """Values that the sends of one family share; places are indexes in the parts of a request.

    `properties` are the parts of a record's properties before, between and after the parts at `values`.
    """

    answers: SentAnswers
    topic: int
    queue_id: int
    born_timestamp: int
    opaque: int
    unique_key: int
    tags: int | None
    values: slice
    properties: Sequence[bytes]
    flag: int
    sys_flag: int
    reconsume_times: int
    code: int
    is_hasty: bool
    """True if the sends do not wait for the disk or a slave, whatever the broker declares."""
    named: Named | None
    """The names that decide about rights, beside the topic; None if each send is checked by itself."""
    signed: SignedColumns | None
    aside: Aside | None
    """Puts the sends aside, if they wait for their time or begin a transaction."""
    time: int
    """The place of the value that says for which time they wait."""


@attrs.define(eq=False)
class SendColumns:
    """Stores streaks of sends.

    `may_take` is true while no topic is static. With access control the rights of all are asked once, and each signature is
    checked.
    """

    broker: SendParts
    checks: SendChecks
    answers: SendAnswers
    guard: Guard
    may_take: bool = True
    suffix: str = attrs.field(init=False)
    """The properties that the broker adds to each message."""
    _asides: Asides = attrs.field(init=False)
    _small: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        options, times = self.broker.options, self.broker.statistics.request_times
        self.suffix = "".join(f"{name}\x01{value}\x02" for name, value in brokers_properties(options).items())
        self._asides = Asides(self.broker.transactions, self.broker.postponement, options.broker_name)
        self._small = sys.maxsize if times is None else SIZE_LIMITS[0]

    def take(self, channel: Channel, streak: Streak, start: int) -> tuple[int, bytes | defer.Deferred[bytes]]:
        """Store the sends from `start` on, up to the first that the processor has to handle.

        Returns how many were stored, and the frames of their answers.
        """
        pattern = self._pattern(streak)
        if pattern is None:
            return 0, b""
        times = self.broker.statistics.request_times
        began = 0.0 if times is None else times.seconds()
        waits = self.broker.durability.waits
        end = start + self.checks.waiting.room if waits else len(streak)
        columns, alike = streak.columns(start, end)
        targets, plain = self._targets(columns[pattern.topic])
        if plain < len(columns[-1]):
            self.broker.statistics.sends_left["the topic or header is special"] += 1
        if not plain:
            return 0, b""
        columns = _first(columns, plain)
        waiting = _waiting(pattern, columns)
        if waiting is None and pattern.aside is not None:
            self.broker.statistics.sends_left["it waits, and not as others do"] += 1
            return 0, b""
        messages = self._messages(channel, pattern, targets, columns, waiting, alike=alike)
        if not messages:
            self.broker.statistics.sends_left["a value is odd"] += 1
            return 0, b""
        allowed = self._count_allowed(channel, pattern, targets, columns) if self.guard.checks else len(messages)
        if not allowed:
            self.broker.statistics.sends_left["its rights or signature are checked"] += 1
            return 0, b""
        if allowed < len(messages):
            columns = _first(columns, allowed)
            waiting = _waiting(pattern, columns)
            messages = self._messages(channel, pattern, targets, columns, waiting, alike=alike)
            assert messages is not None  # a part of what is sound
        places = self.broker.timed_plain_puts.call(messages)
        count = len(places)
        if count < len(messages):
            self.broker.statistics.sends_left["the store has to check it"] += 1
        if not count:
            return 0, b""
        self.count(messages, places)
        handles = None if waiting is None else waiting.handles
        if waiting is not None:
            self._asides.stored(waiting, columns[pattern.topic][:count])
        if waits:
            return count, self._when_durable(pattern, columns, places, handles)
        answers = _answers(pattern, columns, places, _SUCCESS, handles, alike=alike)
        if times is not None:
            times.note_together(pattern.code, count, began)
        return count, answers

    def _pattern(self, streak: Streak) -> SendPattern | None:
        """Return the pattern of a shape; None if its sends are not plain, or no sends are taken now."""
        pattern: SendPattern | None = streak.family.kept
        if pattern is None:
            pattern = streak.family.kept = self._new_pattern(streak)
        if pattern is None or (pattern.is_hasty and self.broker.durability.waits):
            self.broker.statistics.sends_left["the topic or header is special"] += 1
        elif not self.may_take:
            self.broker.statistics.sends_left["topics are static"] += 1
        elif self.checks.waiting.count >= self.checks.waiting.most:
            self.broker.statistics.sends_left["too many sends wait"] += 1
        else:
            return pattern
        return None

    def _targets(self, topics: Sequence[bytes]) -> tuple[Targets, int]:
        """Return the targets of topics up to one that is new, special, or of another kind than the first, and its place."""
        targets: Targets = {}
        first, multi_tag = topics[0], False
        for topic in [first] if topics.count(first) == len(topics) else dict.fromkeys(topics):
            target = self.checks.targets.get(topic.decode("latin-1"))
            if target is None or target.is_special or (targets and target.multi_tag is not multi_tag):
                return targets, topics.index(topic)
            targets[topic], multi_tag = target, target.multi_tag
        return targets, len(topics)

    def _count_allowed(self, channel: Channel, pattern: SendPattern, targets: Targets, columns: Columns) -> int:
        """Return how many sends, from the first one on, are known to be allowed and rightly signed."""
        topics = [target.topic for target in targets.values()]
        secrets = None if pattern.named is None else self.guard.secrets(channel, pattern.named, topics)
        if secrets is None or (secrets and pattern.signed is None):
            return 0
        count = len(columns[-1])
        for secret in secrets:
            assert pattern.signed is not None
            count = min(count, pattern.signed.count_right(columns, secret))
        return count

    def _new_pattern(self, streak: Streak) -> SendPattern | None:
        family = streak.family
        try:
            command = streak.plain(0)
            header = READERS[command.code](command)
        except ProtocolError:
            return None
        names = VARYING[command.code]
        text = (header.properties or "").removesuffix(PROPERTY_SEPARATOR)
        properties, sys_flag, aside = decode_properties(text), without_commit(header.sys_flag), None
        if not ASIDE.isdisjoint(properties):
            aside = self._asides.of(properties, header.reconsume_times or 0)
            if aside is None:
                return None
        if PROPERTY_TRANSACTION_PREPARED in properties:
            sys_flag = reset_transaction_value(sys_flag, MessageSysFlag.TRANSACTION_NOT_TYPE)
        unique_key, tags = (names.properties, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX), (names.properties, PROPERTY_TAGS)
        if (
            header.batch
            or sys_flag & _UNUSUAL_FLAGS
            or unique_key not in family.names
            or names.texts[0] not in family.names
        ):
            return None
        inside, time = [*family.property_places.values()], time_of(properties)
        topic, queue_id, born_timestamp, opaque = map(family.place, (names.texts[0], *names.numbers, OPAQUE_PART))
        return SendPattern(
            self.answers.shaped(command.serialize_type),
            topic,
            queue_id,
            born_timestamp,
            opaque,
            family.place(unique_key),
            family.place(tags) if tags in family.names else None,
            slice(inside[0], inside[-1] + 1, 2),
            self._properties(text, family),
            header.flag,
            sys_flag,
            header.reconsume_times or 0,
            command.code,
            _NO_WAIT in text.split(PROPERTY_SEPARATOR),
            self.guard.named(command),
            signed_columns(family, command, names.properties),
            aside,
            0 if time is None else family.place((names.properties or "", time)),
        )

    def _properties(self, text: str, family: Family) -> list[bytes]:
        """Return the parts of a record's properties that are before, between and after the values that vary."""
        *before, last = around_values(text + PROPERTY_SEPARATOR, family.property_places)
        return [part.encode() for part in (*before, last + self.suffix)]

    def _messages(
        self,
        channel: Channel,
        pattern: SendPattern,
        targets: Targets,
        columns: Columns,
        waiting: Waiting | None,
        *,
        alike: bool,
    ) -> PlainMessages | None:
        """Return the messages; None if one has a value that has to be checked by itself."""
        opaques, bodies, values = columns[pattern.opaque], columns[-1], columns[pattern.values]
        asked, times = numbers_of(columns[pattern.queue_id]), _times(columns[pattern.born_timestamp])
        if asked is None or times is None or not all(bodies):
            return None
        if not _have_queues(targets, columns[pattern.topic], asked):
            return None
        if not pattern.answers.serialize_type and not are_opaques(opaques):
            return None
        if not are_plain(values):
            return None
        properties: list[bytes | Sequence[bytes]] = [*pattern.properties]
        for place, column in enumerate(values):
            properties.insert(2 * place + 1, column)
        topics = {name: target.topic for name, target in targets.items()}
        one, *others = targets.values()
        topic: str | Sequence[str] = [*map(topics.__getitem__, columns[pattern.topic])] if others else one.topic
        if waiting is not None:
            topic = waiting.topic
            properties += waiting.pieces
        return PlainMessages(
            topic,
            asked if waiting is None else waiting.queue_ids,
            bodies,
            properties,
            [0] * len(bodies) if pattern.tags is None else [*map(code_of_tags, columns[pattern.tags])],
            times,
            channel.packed_address,
            pattern.flag,
            pattern.sys_flag | 2 if one.multi_tag else pattern.sys_flag,
            pattern.reconsume_times,
            alike,
            topic == SCHEDULE_TOPIC,
        )

    def count(self, messages: PlainMessages, places: Places) -> None:
        """Count messages of which so many were stored together."""
        count, puts = len(places), self.broker.statistics.puts
        for (topic, queue_id), (times, size) in places.by_queue.items():
            counter = puts[topic][queue_id]
            counter.times += times
            counter.bytes += size
        if max(places.sizes) > self._small:
            for (topic, _), size in zip(messages.queues, places.sizes[:count], strict=False):
                if size > self._small:
                    puts[topic].record(size, 1)
        self.broker.statistics.sends_together += count
        self.broker.statistics.put_messages += count

    def _when_durable(
        self, pattern: SendPattern, columns: Columns, places: Places, handles: Texts | None
    ) -> defer.Deferred[bytes]:
        """Return the answers once the last message is as durable as declared, or is too late; then each has its own code."""
        broker, count = self.broker, len(places)
        began_ms = broker.wall_ms()

        def durable(code: int) -> bytes:
            elapsed_ms = broker.wall_ms() - began_ms
            for (topic, queue_id), (times, _) in places.by_queue.items():
                broker.statistics.puts[topic][queue_id].elapsed_ms += times * elapsed_ms
            if code == _SUCCESS:
                return _answers(pattern, columns, places, code, handles)
            return b"".join(self._answers_of_each(pattern, columns, places, handles))

        reached = broker.durability.reached(places.end_offset)
        self.checks.waiting.wait(reached, count)
        return reached.addCallback(durable)

    def _answers_of_each(
        self, pattern: SendPattern, columns: Columns, places: Places, handles: Texts | None
    ) -> Iterator[bytes]:
        """Yield the answers' frames; successive messages that are equally durable share a code."""
        ends = map(operator.add, places.physical_offsets, places.sizes)
        start = 0
        for code, run in itertools.groupby(map(self.broker.durability.code_of, ends)):
            stop = start + len([*run])
            yield _answers(pattern, columns, places, code, handles, slice(start, stop))
            start = stop


def _waiting(pattern: SendPattern, columns: Columns) -> Waiting | None:
    """Return where sends wait; None for those that do not wait, or that have to be looked at one by one."""
    if pattern.aside is None:
        return None
    sends = Sends(columns[pattern.topic], columns[pattern.queue_id], columns[pattern.unique_key])
    return pattern.aside(sends, columns[pattern.time])


def _first(columns: Columns, count: int) -> Columns:
    """Return so many of the first rows."""
    return columns if count == len(columns[-1]) else [column[:count] for column in columns]


def _have_queues(targets: Targets, topics: Sequence[bytes], queue_ids: Sequence[int]) -> bool:
    """Return whether the topic of each send may have its queue."""
    limits = {topic: target.queue_limit for topic, target in targets.items()}
    return max(queue_ids) < min(limits.values()) or all(map(operator.lt, queue_ids, map(limits.__getitem__, topics)))


def _answers(
    pattern: SendPattern,
    columns: Columns,
    places: Places,
    code: int,
    handles: Texts | None,
    which: slice = slice(None),
    *,
    alike: bool = False,
) -> bytes:
    """Return the frames of the answers to the first requests, one for each place, or to some of them."""
    return pattern.answers.encode(
        code,
        columns[pattern.opaque][which],
        places.physical_offsets[which],
        columns[pattern.queue_id][which],
        places.queue_offsets[which],
        columns[pattern.unique_key][which],
        None if handles is None else handles[which],
        alike=alike,
    )


def _times(texts: Sequence[bytes]) -> int | list[int] | None:
    """Return the same, or one number that all texts are."""
    first = texts[0]
    if texts[-1] == first and texts.count(first) == len(texts) and first.isdigit():
        return int(first)
    return numbers_of(texts)


@functools.lru_cache(maxsize=4096)
def code_of_tags(tags: bytes) -> int:
    """Return the hash of a message's tags, which are UTF-8."""
    return tags_code(tags.decode())
