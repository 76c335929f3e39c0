"""The threads of a store, and what they wait with: those of the system, or others that a simulation decides about."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Thread(Protocol):
    """One that was started."""

    def join(self) -> None:
        """Return when it has ended."""

    def is_alive(self) -> bool:
        """Return whether it has not ended."""


class Event(Protocol):
    """As threading.Event."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Condition(AbstractContextManager[bool, None], Protocol):
    """As threading.Condition."""

    def wait(self, timeout: float | None = None) -> bool: ...

    def notify(self) -> None: ...

    def notify_all(self) -> None: ...


class Threads(Protocol):
    """Makes them."""

    def start(self, run: Callable[[], None], name: str) -> Thread:
        """Return a thread that ends with the process at the latest."""

    def event(self) -> Event: ...

    def condition(self) -> Condition: ...


class SystemThreads:
    """Those of Python."""

    def start(self, run: Callable[[], None], name: str) -> Thread:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def event(self) -> Event:
        return threading.Event()

    def condition(self) -> Condition:
        return threading.Condition()


SYSTEM_THREADS = SystemThreads()
