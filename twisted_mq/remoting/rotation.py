"""Rotates connections with unfinished work of a read: each works in turn, all together for a share of the reactor's time.

However many peers ask for long work at once, a peer that asks for little waits for one round, not for a slice of each of them.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet import interfaces

ROUND_SECONDS = 0.02
"""The time for all of them, between two polls of the sockets."""


class GoesOn(Protocol):
    """A connection with unfinished work."""

    def go_on(self) -> None:
        """Do a slice of the work, and join the rotation again if some is left."""


class Rotation:
    """The rotation of all connections of one server."""

    def __init__(self, clock: interfaces.IReactorTime) -> None:
        self._clock = clock
        self._waiting: dict[GoesOn, None] = {}
        self._next_round: interfaces.IDelayedCall | None = None

    def join(self, connection: GoesOn) -> None:
        """Join at the end of the line; a connection that is in line already keeps its place."""
        self._waiting[connection] = None
        if self._next_round is None:
            self._next_round = self._clock.callLater(0, self._round)

    def leave(self, connection: GoesOn) -> None:
        """Remove a connection that has no work left."""
        self._waiting.pop(connection, None)
        if not self._waiting and self._next_round is not None:
            self._next_round.cancel()
            self._next_round = None

    def _round(self) -> None:
        self._next_round = None
        seconds = self._clock.seconds
        end = seconds() + ROUND_SECONDS
        waiting = self._waiting
        while waiting and seconds() < end:
            connection = next(iter(waiting))
            del waiting[connection]
            connection.go_on()
        if waiting and self._next_round is None:
            self._next_round = self._clock.callLater(0, self._round)
