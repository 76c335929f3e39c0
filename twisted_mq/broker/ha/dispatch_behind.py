"""Makes a slave's messages visible behind its replication (Apache: ReputMessageService, a thread of its own)."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import interfaces

READS_FIRST = 16
"""How many turns in a row bytes that came in put dispatching off."""


class DispatchBehind:
    """Calls `dispatch` in a later turn of the reactor, and again while it says that more is left.

    Turns in which bytes come in go first, READS_FIRST of them at most: what is written can be acknowledged, and a
    master's senders wait for that, not for the slave's readers.
    """

    def __init__(self, clock: interfaces.IReactorTime, dispatch: Callable[[], bool]) -> None:
        self._clock = clock
        self._dispatch = dispatch
        self._call: interfaces.IDelayedCall | None = None
        self._came = False
        self._put_off = 0

    def soon(self) -> None:
        """There is something to dispatch."""
        self._came = True
        if self._call is None:
            self._call = self._clock.callLater(0, self._turn)

    def _turn(self) -> None:
        self._call = None
        came, self._came = self._came, False
        if came and self._put_off < READS_FIRST:
            self._put_off += 1
            more = True
        else:
            self._put_off = 0
            more = self._dispatch()
        if more and self._call is None:
            self._call = self._clock.callLater(0, self._turn)

    def stop(self) -> None:
        """Dispatch nothing more; a second call does nothing."""
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()
