"""Puts aside sends that come many at a time: those that wait for their time, and those that begin a transaction.

This is the quick form of `PostponedSends.put_aside`. A test checks that both store the same.
"""

from __future__ import annotations

import base64
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs

from twisted_mq.broker.schedule.postpone import POSTPONING, Postponement
from twisted_mq.broker.transaction.half_messages import is_half
from twisted_mq.broker.transaction.transaction_service import TransactionService
from twisted_mq.protocol.names.recall_handle import VERSION
from twisted_mq.protocol.names.system_topics import HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TIMER_OUT_MS,
    PROPERTY_TRANSACTION_ID,
    PROPERTY_TRANSACTION_PREPARED,
)

ASIDE = POSTPONING | {PROPERTY_TRANSACTION_PREPARED}
"""A message without one of these properties is not put aside."""
_ODD = frozenset({PROPERTY_TIMER_OUT_MS, PROPERTY_TRANSACTION_ID})
"""A message that is put aside has got these from the broker, unless it has waited before."""

Texts: TypeAlias = Sequence[bytes]


@attrs.frozen
class Waiting:
    """The queues in which messages wait, what their properties get there, and the handles that recall them, if any can."""

    topic: str
    queue_ids: Sequence[int]
    pieces: Sequence[bytes | Texts]
    handles: Texts | None = None


@attrs.frozen
class Sends:
    """The columns that decide where sends wait: topics, queue ids and unique keys. Topics are those of some plain targets."""

    topics: Texts
    queue_ids: Texts
    unique_keys: Texts

    @property
    def places(self) -> list[bytes | Texts]:
        """Return the real topics and queues as pieces of properties."""
        return [b"%b\x01" % PROPERTY_REAL_TOPIC.encode(), self.topics, b"\x02%b\x01" % PROPERTY_REAL_QUEUE_ID.encode(),
                self.queue_ids, b"\x02"]  # fmt: skip


Aside: TypeAlias = Callable[[Sends, Texts], Waiting | None]
"""Puts sends aside; the second argument has the values of the property that says for which time they wait. Returns None for
sends that have to be looked at one by one.
"""


@attrs.frozen(eq=False)
class Asides:
    """Puts aside the sends of one broker."""

    transactions: TransactionService
    postponement: Postponement
    broker_name: str

    def of(self, properties: Mapping[str, str], reconsume_times: int) -> Aside | None:
        """Return what puts aside the sends of a family; None if they have to be looked at one by one."""
        if not _ODD.isdisjoint(properties):
            return None
        if PROPERTY_TRANSACTION_PREPARED in properties:
            return self.half if is_half(properties, 0) and not reconsume_times else None
        time, *others = POSTPONING & properties.keys()
        if others:
            return None
        return self.delayed if time == PROPERTY_DELAY_TIME_LEVEL else functools.partial(self.timed, time)

    def half(self, sends: Sends, values: Texts) -> Waiting | None:
        """Return the half messages of transactions."""
        if not self.transactions.may_prepare or not _are_plain(sends.queue_ids):
            return None
        pieces = [*sends.places, b"%b\x01" % PROPERTY_TRANSACTION_ID.encode(), sends.unique_keys, b"\x02"]
        return Waiting(HALF_TOPIC, [0] * len(values), pieces)

    def delayed(self, sends: Sends, values: Texts) -> Waiting | None:
        """Return the messages of the delay levels that the values name."""
        levels = {value: parse_int(value.decode("latin-1")) or 0 for value in {*values}}
        are_known = all(0 < level <= self.postponement.top_level for level in levels.values())
        if not are_known or not _are_plain(sends.queue_ids):
            return None
        return Waiting(SCHEDULE_TOPIC, [levels[value] - 1 for value in values], sends.places)

    def timed(self, name: str, sends: Sends, values: Texts) -> Waiting | None:
        """Return the messages that wait for the times that the values of this property ask for."""
        ticks = {value: self.postponement.tick(name, value.decode("latin-1")) for value in {*values}}
        if None in ticks.values() or not _are_plain(sends.queue_ids):
            return None
        times = [ticks[value] or 0 for value in values]
        pieces = [b"%b\x01" % PROPERTY_TIMER_OUT_MS.encode(), [b"%d" % one for one in times], b"\x02", *sends.places]
        named = zip(sends.topics, times, sends.unique_keys, strict=True)
        version, broker = VERSION.encode(), self.broker_name.encode()
        texts = [b"%b %b %b %d %b" % (version, topic, broker, time + 1, key) for topic, time, key in named]
        return Waiting(TIMER_TOPIC, [0] * len(values), pieces, [*map(base64.urlsafe_b64encode, texts)])

    def stored(self, waiting: Waiting, topics: Texts) -> None:
        """Count stored half messages as prepared; `topics` are their real ones."""
        if waiting.topic is HALF_TOPIC:
            for topic, count in Counter(topics).items():
                self.transactions.metrics.add(topic.decode(), count)


def time_of(properties: Mapping[str, str]) -> str | None:
    """Return the name of the property that says for which time messages wait; None without one."""
    return next((name for name in POSTPONING if name in properties), None)


def _are_plain(queue_ids: Texts) -> bool:
    """Return True if queue ids are written as the broker writes them, without a leading 0."""
    return not any(text.startswith(b"0") and text != b"0" for text in {*queue_ids})
