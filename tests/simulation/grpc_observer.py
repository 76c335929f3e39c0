"""The promises to gRPC clients of one simulated broker, and whether they are kept."""

from __future__ import annotations

import attrs

from tests.simulation.world import World
from twisted_mq.proxy.handles import parse_handle

Held = tuple[str, str, int, int]
"""Consumer group, kind of topic (original or retry), queue id and offset: a record.

A killed broker may forget that it handed out a message. Then there are two records of it, the original and a retry.
"""
Missing = tuple[str, str]
"""Consumer group and message."""


@attrs.define(eq=False)
class HandedOut:
    """A message at a consumer. Times are in ms of the world's clock."""

    consumer: str
    pop_ms: int
    until_ms: float


@attrs.define(eq=False)
class GrpcObserver:
    """`groups` has the topic of each consumer group."""

    world: World
    groups: dict[str, str]
    broken: str = ""
    acknowledged: dict[str, list[str]] = attrs.field(factory=dict)
    """Names of messages by topic, in the order in which their sends were answered."""
    consumed: dict[str, set[str]] = attrs.field(factory=dict)
    renewed: int = 0
    """Messages that were consumed after their first invisible time was over."""
    handed_out: int = 0
    _held: dict[Held, HandedOut] = attrs.field(factory=dict)
    _done: dict[Held, float] = attrs.field(factory=dict)
    _sent_in_this_life: set[str] = attrs.field(factory=set)
    """Messages whose sends this life of the broker answered: no earlier life has handed them out."""
    _finished: dict[Missing, float] = attrs.field(factory=dict)
    """When a group acknowledged one of these."""
    _last: dict[tuple[str, str], int] = attrs.field(factory=dict)
    _broker_since_ms: float = 0.0

    def _now_ms(self) -> float:
        return self.world.clock.now * 1000

    def broke(self, text: str) -> None:
        self.broken = self.broken or text
        self.world.note(f"BROKEN {text}")

    def broker_died(self) -> None:
        """The promises about what is at consumers hold for one life of a broker."""
        self._held.clear()
        self._done.clear()
        self._finished.clear()
        self._sent_in_this_life.clear()
        self._broker_since_ms = self._now_ms()

    def sent(self, topic: str, name: str) -> None:
        """A send was answered with OK."""
        self.acknowledged.setdefault(topic, []).append(name)
        self._sent_in_this_life.add(name)
        self.world.told("sent", topic=topic, message=name)

    def received(self, group: str, consumer: str, name: str, handle: str, *, renewed: bool) -> None:
        """A consumer got a message. A `renewed` one is its own until it acknowledges it or vanishes."""
        receipt = parse_handle(handle).receipt
        key = record_of(group, handle)
        until = float("inf") if renewed else receipt.pop_time + receipt.invisible_time
        self.world.told("received", group=group, consumer=consumer, message=name, popped=receipt.pop_time)
        self.handed_out += 1
        if receipt.pop_time < self._broker_since_ms:
            return
        before = self._held.get(key)
        if before is not None and before.pop_ms <= receipt.pop_time < before.until_ms:
            self.broke(f"{name} was handed to {consumer} while it was at {before.consumer} ({group})")
        done = self._done.get(key)
        if done is not None and receipt.pop_time > done:
            self.broke(f"{name} was handed to {consumer} after it was acknowledged ({group})")
        finished = self._finished.get((group, name))
        if finished is not None and receipt.pop_time > finished:
            self.broke(f"{name} came back to {consumer} after it was acknowledged ({group})")
        if before is None or before.pop_ms <= receipt.pop_time:
            self._held[key] = HandedOut(consumer, receipt.pop_time, until)
        self._check_order(group, name)

    def _check_order(self, group: str, name: str) -> None:
        """Messages of one message group (name: GROUP-NUMBER) come in order, each first when all before it came."""
        lane, _, number = name.rpartition("-")
        if not lane:
            return
        key = group, lane
        missing = [
            one
            for one in self.acknowledged.get(self.groups[group], ())
            if one.rpartition("-")[0] == lane and self._last.get(key, -1) < int(one.rpartition("-")[2]) < int(number)
        ]
        if missing:
            self.broke(f"{name} was handed out before {missing[0]} ({group})")
        self._last[key] = max(self._last.get(key, -1), int(number))

    def worked(self, group: str, name: str) -> None:
        """A consumer has worked on a message, and sends its acknowledgement. The answer may get lost."""
        self.consumed.setdefault(group, set()).add(name)

    def done(self, group: str, name: str, handle: str, seconds: float) -> None:
        """An acknowledgement was answered with OK; the consumer had the message for so long.

        A handle whose message was given back meanwhile is worth nothing, and a broker does not tell.
        """
        self.renewed += seconds > 10.0
        record = record_of(group, handle)
        held = self._held.pop(record, None)
        if held is not None and held.pop_ms == parse_handle(handle).receipt.pop_time and self._now_ms() < held.until_ms:
            self._done[record] = self._now_ms()
            if name in self._sent_in_this_life:
                self._finished[group, name] = self._now_ms()
        self.world.told("done", group=group, message=name)

    def vanished(self, consumer: str) -> None:
        """A consumer is gone, or cut off: what was renewed for it may come back."""
        for held in self._held.values():
            if held.consumer == consumer and held.until_ms == float("inf"):
                held.until_ms = self._now_ms()

    def missing(self) -> list[Missing]:
        """Return what groups have not consumed."""
        return [
            (group, name)
            for group, topic in self.groups.items()
            for name in self.acknowledged.get(topic, ())
            if name not in self.consumed.get(group, ())
        ]


def record_of(group: str, handle: str) -> Held:
    """Return the record that a handle names."""
    receipt = parse_handle(handle).receipt
    return group, receipt.mark, receipt.queue_id, receipt.queue_offset
