"""One loop for all plain calls of a process, in which the client core runs while anything is started.

In a child of a fork there is no such loop: what was started before is refused there (ForkedProcess), what is made there has a
loop of its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import Protocol

from twisted_mq.blocking.loop_thread import LoopThread, check_no_loop

EXIT_SECONDS = 1.0
"""What is still started when the interpreter ends may finish for that long."""


class Stops(Protocol):
    """What is started, and stopped at the interpreter's end where its user does not."""

    def stop(self, finish_seconds: float | None = None) -> None:
        """Harmless twice."""


class Background:
    """The loop of this process, while anything uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: list[Stops] = []
        self._thread: LoopThread | None = None

    def enter(self, member: Stops) -> LoopThread:
        """The loop, for a member that begins."""
        check_no_loop()
        with self._lock:
            if self._thread is None:
                self._thread = LoopThread()
            self._members.append(member)
            return self._thread

    def leave(self, member: Stops) -> None:
        """A member has ended; with the last one the loop ends."""
        with self._lock:
            self._members.remove(member)
            if self._members or self._thread is None:
                return
            thread, self._thread = self._thread, None
            thread.stop()

    def stop_all(self) -> None:
        """The interpreter ends: what is started stops."""
        for member in list(self._members):
            member.stop(EXIT_SECONDS)


_background = Background()


def background() -> Background:
    """Of this process."""
    return _background


def _forget() -> None:
    """In a child: the loop is the parent's, and nothing of it works here."""
    global _background
    _background = Background()


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _background.stop_all())
