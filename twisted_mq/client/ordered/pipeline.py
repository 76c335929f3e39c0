"""The messages of one queue that an ordered producer has not seen stored yet, and which of them to send next. Pure.

Messages are numbered from 1 under each leader term. They go out in order, several at a time. A run begins at the first
message that is not known to be stored, at the present head of the queue, and ends with the first refusal or lost
connection. Then the next run begins, so that no message overtakes a refused one.

A broker does not store a message again that it has under the same epoch and leader. A new head gets all messages that were
not acknowledged. Numbers of messages that were given up after they had been sent are not used again, as they may be
stored: this needs another leader term, which numbers from 1 again. So the numbers of a leader have no gap in the stores,
whatever failed.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Generic, TypeVar

import attrs

Item = TypeVar("Item")


@attrs.frozen
class Window:
    """The limits of a queue's messages in flight to a broker; one message is always allowed."""

    messages: int = 256
    size_bytes: int = 4 * 1024 * 1024


@attrs.define(eq=False)
class Waiting(Generic[Item]):
    """A message that waits until it and all messages before it are stored."""

    item: Item
    size: int
    sequence: int
    run: int = 0
    """The run in which it was sent last; 0: never under this leader."""
    stored: bool = False


class Pipeline(Generic[Item]):
    """The messages of one queue, in the order in which they were added. Nothing is sent before the first `begin`."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._waiting: collections.deque[Waiting[Item]] = collections.deque()
        self._next_sequence = 1
        self._sent = 0  # how many waiting messages were sent in this run
        self._sent_bytes = 0
        self._renewed_after = 0
        self.run = 0
        self.base = 1
        """Sequence of this run's first message that was not stored when nothing was in flight."""
        self.is_open = False
        self.is_spent = False
        """Messages that were sent were given up: nothing is sent before `renew`."""
        self.size_bytes = 0
        """The size of all messages that wait."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting[Item]]:
        return iter(self._waiting)

    def add(self, item: Item, size: int) -> Waiting[Item]:
        """Put a message at the end."""
        waiting = Waiting(item, size, self._next_sequence)
        self._next_sequence += 1
        self._waiting.append(waiting)
        self.size_bytes += size
        return waiting

    def begin(self) -> None:
        """Begin a run: send all messages again, from the first, to the present head."""
        self.run += 1
        self._sent = self._sent_bytes = 0
        self.is_open = not self.is_spent

    def end(self) -> None:
        """Send nothing until the next `begin`."""
        self.is_open = False

    def renew(self) -> None:
        """Begin a leader term: number from 1 again. Nothing is sent before the next `begin`."""
        self.is_open = self.is_spent = False
        self._renewed_after = self.run
        for sequence, waiting in enumerate(self._waiting, 1):
            waiting.sequence, waiting.run, waiting.stored = sequence, 0, False
        self._next_sequence = len(self._waiting) + 1

    def take(self) -> list[Waiting[Item]]:
        """Return the messages to send now, in this order; they count as sent."""
        taken: list[Waiting[Item]] = []
        while self.is_open and self._sent < len(self._waiting) and self._may_follow(self._waiting[self._sent]):
            waiting = self._waiting[self._sent]
            if not self._sent:
                self.base = waiting.sequence
            waiting.run = self.run
            self._sent += 1
            self._sent_bytes += waiting.size
            taken.append(waiting)
        return taken

    def _may_follow(self, waiting: Waiting[Item]) -> bool:
        """Return whether the message may be sent after those in flight."""
        if not self._sent:
            return True
        return self._sent < self._window.messages and self._sent_bytes + waiting.size <= self._window.size_bytes

    def stored(self, waiting: Waiting[Item], run: int) -> list[Waiting[Item]]:
        """Take an acknowledgement for a run. Return the messages that are done: they and all before them are stored.

        An acknowledgement of an earlier leader term does not count: its number now belongs to a message of this term, which
        must be stored.
        """
        if run <= self._renewed_after:
            return []
        waiting.stored = True
        done: list[Waiting[Item]] = []
        while self._waiting and self._waiting[0].stored:
            first = self._waiting.popleft()
            self.size_bytes -= first.size
            if self._sent:
                self._sent -= 1
                self._sent_bytes -= first.size
            done.append(first)
        return done

    def refused(self, run: int) -> bool:
        """Take a refusal or loss of a message of that run. Return whether it ends the run: an older run has ended already."""
        ends = self.is_open and run == self.run
        if ends:
            self.is_open = False
        return ends

    def give_up(self, first: Waiting[Item] | None = None) -> list[Waiting[Item]]:
        """Take out that message and all after it, or all: no message may be stored after one that failed.

        Messages that were sent may be stored all the same; the pipeline is then spent.
        """
        given_up: list[Waiting[Item]] = []
        while self._waiting and (not given_up or given_up[-1] is not first):
            last = self._waiting.pop()
            self.size_bytes -= last.size
            given_up.append(last)
        if any(waiting.run for waiting in given_up):
            self.is_spent, self.is_open = True, False
        elif given_up:
            self._next_sequence = given_up[-1].sequence
        return given_up[::-1]
