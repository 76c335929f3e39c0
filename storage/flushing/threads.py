"""The threads and waiting objects of a store: those of the system, or others that a simulation controls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Thread(Protocol):
    """A started thread."""

    def join(self) -> None:
        """Return when the thread has ended."""

    def is_alive(self) -> bool:
        """Return whether the thread is running."""


class ThreadEvent(Protocol):
    """An event with the methods of threading.Event that a store uses."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Condition(AbstractContextManager[bool, None], Protocol):
    """A condition with the methods of threading.Condition that a store uses."""

    def wait(self, timeout: float | None = None) -> bool: ...

    def notify(self) -> None: ...

    def notify_all(self) -> None: ...


class Threads(Protocol):
    """Makes threads and the objects they wait for."""

    def start(self, run: Callable[[], None], name: str) -> Thread:
        """Start a thread that ends with the process at the latest, and return it."""

    def event(self) -> ThreadEvent: ...

    def condition(self) -> Condition: ...


class SystemThreads:
    """The threads of Python."""

    def start(self, run: Callable[[], None], name: str) -> Thread:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def event(self) -> ThreadEvent:
        return threading.Event()

    def condition(self) -> Condition:
        return threading.Condition()


SYSTEM_THREADS = SystemThreads()
