"""Holds requests so that they leave together: those made while answers are read, or in one turn of the reactor, are one write.

A client with many requests in flight makes the next ones as answers come, and both ends handle a joint write more
cheaply. A request that is alone in flight leaves at once.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet import interfaces


class Holds(Protocol):
    """A connection with requests that have not left."""

    def flush(self) -> None:
        """Send them. Harmless if there are none."""


class Outbox:
    """The connections of one client that hold requests back."""

    def __init__(self, clock: interfaces.IReactorTime) -> None:
        self._clock = clock
        self._holding: list[Holds] = []
        self._turn: interfaces.IDelayedCall | None = None
        self.reading = False
        """True while answers are read; everything leaves after that."""

    def add(self, connection: Holds) -> None:
        """Add a connection that holds requests from now on, until its `flush` is called."""
        self._holding.append(connection)
        if not self.reading and self._turn is None:
            self._turn = self._clock.callLater(0, self._turned)

    def flush(self) -> None:
        """Send all held requests."""
        holding, self._holding = self._holding, []
        for connection in holding:
            connection.flush()

    def stop(self) -> None:
        """Send all held requests, and cancel the timer."""
        self.flush()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _turned(self) -> None:
        self._turn = None
        self.flush()
