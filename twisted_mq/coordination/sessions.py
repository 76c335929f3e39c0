"""Keeps the sessions of a coordinator in memory: each ends when its client was silent for its time."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import interfaces

from twisted_mq.coordination.interfaces import Delete
from twisted_mq.coordination.tree import Tree


@attrs.define(eq=False)
class _Session:
    seconds: float
    touched: float
    timer: interfaces.IDelayedCall | None = None


class Sessions:
    """Sessions by id, counted from 1. The end of a session deletes its ephemeral nodes; then `ended` is called with its id.

    Timers are the clock's. `monotonic` decides whether a session's time is over, because clocks of reactors jump with the
    system's.
    """

    def __init__(self, clock: interfaces.IReactorTime, monotonic: Callable[[], float], tree: Tree) -> None:
        self.ended: list[Callable[[int], object]] = []
        self._clock = clock
        self._monotonic = monotonic
        self._tree = tree
        self._sessions: dict[int, _Session] = {}
        self._last = 0

    def __contains__(self, session: int) -> bool:
        return session in self._sessions

    def open(self, seconds: float) -> int:
        """Return a new session that ends `seconds` after the last sign of its client."""
        self._last += 1
        self._sessions[self._last] = _Session(seconds, self._monotonic())
        self._wait(self._last, seconds)
        return self._last

    def touch(self, session: int) -> bool:
        """Record a sign of the client. False if the session is over."""
        found = self._sessions.get(session)
        if found is not None:
            found.touched = self._monotonic()
        return found is not None

    def end(self, session: int) -> None:
        """End a session, at its client's wish or for its silence. A second call does nothing."""
        found = self._sessions.pop(session, None)
        if found is None:
            return
        if found.timer is not None and found.timer.active():
            found.timer.cancel()
        paths = self._tree.ephemeral(session)
        if paths:
            self._tree.apply([Delete(path) for path in paths], session, int(self._clock.seconds() * 1000))
        for ended in tuple(self.ended):
            ended(session)

    def suspend(self) -> None:
        """End no session by its time until `resume`."""
        for session in self._sessions.values():
            if session.timer is not None and session.timer.active():
                session.timer.cancel()

    def resume(self) -> None:
        """Give each session its whole time again."""
        for number, session in self._sessions.items():
            session.touched = self._monotonic()
            self._wait(number, session.seconds)

    def _wait(self, session: int, seconds: float) -> None:
        self._sessions[session].timer = self._clock.callLater(seconds, self._look, session)

    def _look(self, number: int) -> None:
        session = self._sessions[number]
        left = session.touched + session.seconds - self._monotonic()
        if left > 0:
            self._wait(number, left)
        else:
            self.end(number)
