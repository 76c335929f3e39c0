"""Makes a slave's messages visible after they were replicated (Apache: ReputMessageService, a thread of its own)."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import interfaces

PAUSE_SECONDS = 0.001
"""The time that bytes wait for others, so that they are acknowledged first (Apache: reput sleeps as long)."""

MANY_BYTES = 64 * 1024
"""The bytes that arrive in a pause while a slave catches up: 64 MB/s."""

PAUSES_PUT_OFF = 16
"""The number of pauses in a row for which many bytes delay dispatching."""


class DispatchBehind:
    """Calls `dispatch` soon after bytes arrive, and again while it says that more is left.

    While very many bytes arrive, replication goes first: a master's senders wait for acknowledgements, and
    do not wait for the slave's readers.
    """

    def __init__(self, clock: interfaces.IReactorTime, dispatch: Callable[[], bool]) -> None:
        self._clock = clock
        self._dispatch = dispatch
        self._call: interfaces.IDelayedCall | None = None
        self._came = 0
        self._put_off = 0
        self._stopped = False

    def soon(self, byte_count: int) -> None:
        """Dispatch soon, because so many bytes arrived."""
        self._came += byte_count
        if self._call is None and not self._stopped:
            self._call = self._clock.callLater(PAUSE_SECONDS, self._look)

    def _look(self) -> None:
        self._call = None
        came, self._came = self._came, 0
        if came >= MANY_BYTES and self._put_off < PAUSES_PUT_OFF:
            self._put_off += 1
            self._call = self._clock.callLater(PAUSE_SECONDS, self._look)
            return
        self._put_off = 0
        if self._dispatch() and self._call is None and not self._stopped:
            self._call = self._clock.callLater(0, self._look)

    def stop(self) -> None:
        """Dispatch nothing more, whatever arrives. A second call does nothing."""
        self._stopped = True
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()
