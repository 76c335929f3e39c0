"""What an ordered producer has not seen stored yet, of one queue, and what of it to send next. Pure.

Messages are numbered from 1 under each leader term. They go out in order, several at a time; a run of them begins at the
first one that is not known to be stored, at the present head of the queue, and ends with the first refusal or lost
connection. The next run then begins, so that nothing overtakes what was refused. What a broker has already, it does not
store again under the same epoch and leader; a new head gets all that was not acknowledged. Numbers of messages that were
given up after they had been sent are not used again, for they may be stored: another leader term is needed, which numbers anew.
So the numbers of a leader have no gap in the stores, whatever failed.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Generic, TypeVar

import attrs

Item = TypeVar("Item")


@attrs.frozen
class Window:
    """How much is on its way to a broker at once, of one queue; one message always may be."""

    messages: int = 256
    size_bytes: int = 4 * 1024 * 1024


@attrs.define(eq=False)
class Waiting(Generic[Item]):
    """One message, until all up to it are stored."""

    item: Item
    size: int
    sequence: int
    run: int = 0
    """In which it was sent last; 0: never under this leader."""
    stored: bool = False


class Pipeline(Generic[Item]):
    """The messages of one queue, in the order in which they were added. Nothing is sent before the first `begin`."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._waiting: collections.deque[Waiting[Item]] = collections.deque()
        self._next_sequence = 1
        self._sent = 0  # how many of those that wait were sent in this run
        self._sent_bytes = 0
        self._renewed_after = 0
        self.run = 0
        self.base = 1
        """Sequence of the first message of this run that was not stored when nothing was on its way."""
        self.is_open = False
        self.is_spent = False
        """Whether messages that were sent were given up: nothing is sent before `renew`."""
        self.size_bytes = 0
        """Of all that wait."""

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
        """Send all again, from the first on, to whoever is the head now."""
        self.run += 1
        self._sent = self._sent_bytes = 0
        self.is_open = not self.is_spent

    def end(self) -> None:
        """Send nothing until the next `begin`."""
        self.is_open = False

    def renew(self) -> None:
        """A new leader term: number from 1 again. Nothing is sent before the next `begin`."""
        self.is_open = self.is_spent = False
        self._renewed_after = self.run
        for sequence, waiting in enumerate(self._waiting, 1):
            waiting.sequence, waiting.run, waiting.stored = sequence, 0, False
        self._next_sequence = len(self._waiting) + 1

    def take(self) -> list[Waiting[Item]]:
        """What is to be sent now, in this order; it counts as sent."""
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
        """Whether it may be sent behind those that are on their way."""
        if not self._sent:
            return True
        return self._sent < self._window.messages and self._sent_bytes + waiting.size <= self._window.size_bytes

    def stored(self, waiting: Waiting[Item], run: int) -> list[Waiting[Item]]:
        """An acknowledgement of what was sent in a run: the messages that are done, with all before them stored.

        One of an earlier leader term does not count: its number is this term's now, and has to be in the stores.
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
        """A refusal or a loss of something sent in that run; whether it ends the present run. The rest is old news."""
        ends = self.is_open and run == self.run
        if ends:
            self.is_open = False
        return ends

    def give_up(self, first: Waiting[Item] | None = None) -> list[Waiting[Item]]:
        """Take out that message and all behind it, or all; nothing may be stored behind a message that failed.

        Those that were sent may be stored all the same; the pipeline is spent then.
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
