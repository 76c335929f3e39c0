"""Sent and consumed messages of one process: the state of each, in memory that does not grow with their number."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TextIO

import attrs

from twisted_mq.client import Message, RocketMQError, SendResult

KEYS = 4
"""Messages of a key are sent one after the other, into one queue."""
VISITOR = KEYS
"""The key of messages whose producer is made for one of them."""
STEADY, POLLING = "steady", "polling"
"""Groups; each takes all messages."""
FILLER = b"." * 100
SLOW_EACH = 40
"""Ratio of slowly consumed messages: 1 of 40."""
NO_PLACE = (-1, -1)


@attrs.define
class Taken:
    """Numbers of one key: all that are `below`, and those `ahead` of it."""

    below: int = 0
    ahead: set[int] = attrs.field(factory=set)

    def add(self, number: int) -> bool:
        """Add a number; return True if it is new."""
        if number < self.below or number in self.ahead:
            return False
        self.ahead.add(number)
        while self.below in self.ahead:
            self.ahead.remove(self.below)
            self.below += 1
        return True

    @property
    def count(self) -> int:
        return self.below + len(self.ahead)


class Ledger:
    """All of one process; any thread may use it. `sent` gets a line for each send, as tests.soak.load reads it."""

    def __init__(self, topic: str, sent: TextIO) -> None:
        self._topic = topic
        self._file = sent
        self._lock = threading.Lock()
        self._begun = [0] * (KEYS + 1)
        self._failed: set[tuple[int, int]] = set()
        self._taken = {(group, key): Taken() for group in (STEADY, POLLING) for key in range(KEYS + 1)}
        self.statuses: Counter[str] = Counter()
        self.deliveries: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        """Deliveries of what its group had taken before."""

    def begin(self, key: int) -> Sending:
        """The next message of a key."""
        with self._lock:
            number = self._begun[key]
            self._begun[key] += 1
        return Sending(key, number, Message(self._topic, b"%d %d %s" % (key, number, FILLER)))

    def end(self, sending: Sending, outcome: SendResult | RocketMQError) -> None:
        """Record the outcome of a send; a failed one may still be stored."""
        place = NO_PLACE
        status = type(outcome).__name__
        if isinstance(outcome, SendResult):
            status, place = outcome.status.name, (outcome.queue.queue_id, outcome.queue_offset)
        micros = int((time.monotonic() - sending.began) * 1_000_000)
        key, number = sending.key, sending.number
        with self._lock:
            self.statuses[status] += 1
            print(0, micros, key, number, status, *place, file=self._file)
            if place is NO_PLACE:
                self._failed.add((key, number))
                for group in (STEADY, POLLING):
                    self._taken[group, key].add(number)

    def took(self, group: str, body: bytes) -> bool:
        """A message was consumed; whether it is one of the slow ones."""
        key, number = map(int, body.split(b" ", 2)[:2])
        with self._lock:
            self.deliveries[group] += 1
            if not self._taken[group, key].add(number) and (key, number) not in self._failed:
                self.again[group] += 1
        return number % SLOW_EACH == SLOW_EACH - 1

    @property
    def missing(self) -> int:
        """Acknowledged messages that a group has not taken, while nothing is being sent."""
        with self._lock:
            return sum(self._begun[key] - taken.count for (_, key), taken in self._taken.items())


@attrs.frozen
class Sending:
    """A send that has begun."""

    key: int
    number: int
    message: Message
    began: float = attrs.field(factory=time.monotonic)
