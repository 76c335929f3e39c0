"""Keeps values that brokers registered for topics, by topic and by broker. Pure; changes of many topics are work in slices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from typing import Generic, TypeVar

import attrs
from sortedcontainers import SortedDict

V = TypeVar("V")

TOPICS_OF_SLICE = 1000

T = TypeVar("T")


def run_all_slices(work: Generator[object, None, T]) -> T:
    """Run all slices of work in one go."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        result: T = end.value
        return result


@attrs.define(eq=False)
class ByTopic(Generic[V]):
    """Topic -> broker name -> that broker's value; topics in order. `changes` counts the changes.

    A topic's values are replaced, never changed, so that topics may share them: a million dictionaries cost the
    garbage collector half a second at a time.
    """

    share: Callable[[tuple[tuple[str, V], ...]], dict[str, V]] = dict
    """Makes, or finds, a topic's values."""
    by_topic: dict[str, dict[str, V]] = attrs.field(factory=SortedDict, init=False)
    changes: int = attrs.field(default=0, init=False)
    count: int = attrs.field(default=0, init=False)
    """Pairs of a topic and a broker."""
    _of_broker: dict[str, set[str]] = attrs.field(factory=dict, init=False)

    def topics_of(self, broker_name: str) -> Collection[str]:
        """Return the topics of a broker, in no order."""
        return self._of_broker.get(broker_name, ())

    def get(self, topic: str, broker_name: str) -> V | None:
        return self.by_topic.get(topic, {}).get(broker_name)

    def put(self, topic: str, broker_name: str, value: V) -> bool:
        """Set a value. Returns True if it is new."""
        values = self.by_topic.get(topic, {})
        before = values.get(broker_name)
        if before is value or before == value:
            return False
        others = (pair for pair in values.items() if pair[0] != broker_name)
        self.by_topic[topic] = self.share((*others, (broker_name, value)))
        self.changes += 1
        if before is None:
            self.count += 1
            self._of_broker.setdefault(broker_name, set()).add(topic)
        return True

    def drop(self, topic: str, broker_name: str) -> None:
        """Forget a broker's value for a topic."""
        topics = self._of_broker.get(broker_name, set())
        if topic not in topics:
            return
        topics.remove(topic)
        if not topics:
            del self._of_broker[broker_name]
        left = tuple(pair for pair in self.by_topic[topic].items() if pair[0] != broker_name)
        if left:
            self.by_topic[topic] = self.share(left)
        else:
            del self.by_topic[topic]
        self.count -= 1
        self.changes += 1

    def drop_topic(self, topic: str) -> None:
        """Forget all brokers' values for a topic."""
        for broker_name in list(self.by_topic.get(topic, ())):
            self.drop(topic, broker_name)

    def drop_each(self, broker_name: str, topics: Collection[str]) -> Generator[None, None, None]:
        """Forget a broker's values for these topics."""
        for number, topic in enumerate(list(topics), 1):
            self.drop(topic, broker_name)
            if not number % TOPICS_OF_SLICE:
                yield

    def drop_broker(self, broker_name: str) -> Generator[None, None, None]:
        """Forget all values of a broker."""
        yield from self.drop_each(broker_name, self.topics_of(broker_name))

    def change_each(self, broker_name: str, change: Callable[[V], V]) -> Generator[None, None, int]:
        """Change a broker's values for all its topics; returns how many it has."""
        topics = list(self.topics_of(broker_name))
        for number, topic in enumerate(topics, 1):
            held = self.get(topic, broker_name)
            if held is not None:
                self.put(topic, broker_name, change(held))
            if not number % TOPICS_OF_SLICE:
                yield
        return len(topics)
