"""The event loop of a process's plain calls. The client core runs in it while any client is started.

A fork does not have its parent's loop: clients that were started before the fork raise ForkedProcess there, new ones get a
new loop.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import Protocol

from twisted_mq.blocking.loop_thread import LoopThread, check_no_loop

EXIT_SECONDS = 1.0
"""The time in which clients may finish when the interpreter exits."""


class Stops(Protocol):
    """A client that is stopped when the interpreter exits, if its user did not stop it."""

    def stop(self, finish_seconds: float | None = None) -> None:
        """Stop. Harmless twice."""


class Background:
    """The loop of this process, which runs while a member uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: list[Stops] = []
        self._thread: LoopThread | None = None

    def enter(self, member: Stops) -> LoopThread:
        """Add a member that starts; return the loop's thread, started if it is the first."""
        check_no_loop()
        with self._lock:
            if self._thread is None:
                self._thread = LoopThread()
            self._members.append(member)
            return self._thread

    def leave(self, member: Stops) -> None:
        """Remove a member that has stopped. The loop ends with the last one."""
        with self._lock:
            self._members.remove(member)
            if self._members or self._thread is None:
                return
            thread, self._thread = self._thread, None
            thread.stop()

    def stop_all(self) -> None:
        """Stop all members when the interpreter exits."""
        for member in list(self._members):
            member.stop(EXIT_SECONDS)


_background = Background()


def background() -> Background:
    """Return the background loop of this process."""
    return _background


def _forget() -> None:
    """Drop the parent's loop in a fork: it does not run here."""
    global _background
    _background = Background()


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _background.stop_all())
