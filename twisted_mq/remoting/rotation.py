"""Shares the reactor's time among connections with work: each has its turn, all together a part of the time between two polls.

Work is put off in two cases. A read whose commands take long goes on in a later turn. And if the reads of one poll together
take long, the rest of them wait: a thousand connections that come at once would else hold up a peer whose read is the last. While
connections wait for turns, few reads go before them.

The turns go by share (`remoting.shares`): the share that has used the least time is next, so that a peer that asks for little
waits for one turn, however many connections others open. A share's connections that ask for little have one turn together: a
client waits for one turn of others, not for one with each of its connections.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Protocol

import attrs
from twisted.internet import interfaces

from twisted_mq.logs import Logger

ROUND_SECONDS = 0.01
"""The time for all turns between two polls of the sockets, if that is enough for a turn of each share that waits."""
LONGEST_ROUND_SECONDS = 0.05
"""The time for a turn of each share. A poll may come long after the one before, because threads and other processes take the
processor. A share must not wait for as many polls as there are shares then.
"""
CROWD_SECONDS = 0.01
"""The time for the reads of one poll, counted from the read that comes this long after the poll before."""
BACKLOG_SECONDS = 0.002
"""The same while connections wait for turns: a read that joins them is served by share, one that does not by chance."""
TURN_SECONDS = 0.002
"""The time from which on a turn has no further connection of its share."""
MOST_TOGETHER = 16
"""The connections of a share that go on in one turn, at most."""


class GoesOn(Protocol):
    """A connection with unfinished work."""

    def go_on(self) -> None:
        """Do a slice of the work, and join the rotation again if some is left."""

    def abort(self) -> None:
        """Close the connection, because its work failed: its state is not known any more."""


@attrs.define(eq=False)
class ShareLine:
    """The connections of a share that wait, and the seconds that the share has used. `entry` is 0 during its turn."""

    used: float
    entry: int = 0
    waiting: dict[GoesOn, None] = attrs.field(factory=dict)


@attrs.define(eq=False)
class WaitingCall:
    """A call that waits for its turn. It can be cancelled, as those of a reactor can."""

    go_on: Callable[[], None]
    rotation: Rotation

    def cancel(self) -> None:
        """Leave the rotation."""
        self.rotation.leave(self)

    def abort(self) -> None:
        """Do nothing: the call is over."""


class Rotation:
    """The rotation of all connections of one server, and of its other work.

    `ask_at` is the time, in seconds of the clock, from which a read asks `is_crowded` before its commands are processed.
    A connection whose work fails is closed; the others go on.
    """

    log = Logger()

    def __init__(self, clock: interfaces.IReactorTime) -> None:
        self.clock = clock
        self._shares: dict[GoesOn, str] = {}
        self._lines: dict[str, ShareLine] = {}
        self._order: list[tuple[float, int, str]] = []
        self._entries = 0
        self._least_used = 0.0
        self._next_round: interfaces.IDelayedCall | None = None
        self._crowded_at: float | None = None
        self.ask_at = clock.seconds() + CROWD_SECONDS

    def is_crowded(self, now: float) -> bool:
        """Return True if the reads of this poll have taken their time, so that the work of this one has to wait."""
        if self._crowded_at is None:
            self.clock.callLater(0, self._polled)
            self._crowded_at = now + self._read_seconds
        return now >= self._crowded_at

    def _polled(self) -> None:
        self._crowded_at = None
        self.ask_at = self.clock.seconds() + self._read_seconds

    @property
    def _read_seconds(self) -> float:
        return BACKLOG_SECONDS if self._shares else CROWD_SECONDS

    def join(self, connection: GoesOn, share: str) -> None:
        """Wait for a turn of the share; a connection that waits already keeps its place."""
        if connection in self._shares:
            return
        self._shares[connection] = share
        line = self._lines.get(share)
        if line is None:
            line = self._lines[share] = ShareLine(self._least_used)
            self._enter(share, line)
        line.waiting[connection] = None
        if self._next_round is None:
            self._next_round = self.clock.callLater(0, self._round)

    def call(self, share: str, work: Callable[[], None]) -> WaitingCall:
        """Call `work` at the next turn of the share."""
        call = WaitingCall(work, self)
        self.join(call, share)
        return call

    def leave(self, connection: GoesOn) -> None:
        """Remove a connection that has no work left."""
        share = self._shares.pop(connection, None)
        if share is None:
            return
        line = self._lines[share]
        del line.waiting[connection]
        if not line.waiting and line.entry:
            self._end(share)
        if not self._shares and self._next_round is not None:
            self._next_round.cancel()
            self._next_round = None

    def _enter(self, share: str, line: ShareLine) -> None:
        self._entries += 1
        line.entry = self._entries
        heapq.heappush(self._order, (line.used, line.entry, share))

    def _end(self, share: str) -> None:
        """Forget the line of a share. If it comes back it is level with the others, at most one turn ahead of its due."""
        del self._lines[share]
        if not self._lines:
            self._order.clear()
            self._least_used = 0.0

    def _round(self) -> None:
        """Give turns for ROUND_SECONDS, and one to each share that waits now, for LONGEST_ROUND_SECONDS at most."""
        self._next_round = None
        seconds = self.clock.seconds
        now = seconds()
        end, longest, shares = now + ROUND_SECONDS, now + LONGEST_ROUND_SECONDS, len(self._lines)
        try:
            for turn in range(len(self._shares)):
                if now >= (end if turn >= shares else longest) or not self._shares:
                    break
                now = self._turn(now)
        finally:
            if self._shares and self._next_round is None:
                self._next_round = self.clock.callLater(0, self._round)

    def _turn(self, now: float) -> float:
        """Let the first connections of the next share go on. Return the time after them."""
        used, entry, share = heapq.heappop(self._order)
        line = self._lines.get(share)
        if line is None or line.entry != entry:
            return now
        self._least_used = used
        line.entry = 0  # it is the one that goes on: it keeps its line, whoever leaves or joins
        after, end = now, now + TURN_SECONDS
        try:
            for connection in tuple(itertools.islice(line.waiting, MOST_TOGETHER)):
                if connection not in line.waiting:  # it left meanwhile
                    continue
                del line.waiting[connection]
                del self._shares[connection]
                self._go_on(connection)
                after = self.clock.seconds()
                if after >= end:
                    break
        finally:
            line.used += after - now
            if line.waiting:
                self._enter(share, line)
            else:
                self._end(share)
        return after

    def _go_on(self, connection: GoesOn) -> None:
        try:
            connection.go_on()
        except Exception:
            connection.abort()
            self.log.failure("work failed in its turn: {connection}", connection=connection)
