"""The event loop of plain calls, in its own thread, and the functions that other threads have it call."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import os
import selectors
import socket
import threading
from collections.abc import Callable, Sized
from typing import TypeAlias

from twisted_mq.blocking.callers import Row
from twisted_mq.client.core.errors import ClientStateError, ForkedProcess

Due: TypeAlias = tuple[contextvars.Context, Callable[..., object], tuple[object, ...]]
"""A function to call: its contextvars, the function, its arguments."""


class DueSelector(selectors.DefaultSelector):
    """The selector of a loop's thread. Before the loop sleeps, it checks for functions that other threads have added.

    So threads need to wake the loop only while it sleeps.
    """

    def __init__(self, due: Sized, row: Row, awake: Callable[[], object]) -> None:
        """Take `awake`, which is called if functions are due after a sleep."""
        super().__init__()
        self._due = due
        self._row = row
        self._awake = awake
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)
        self.asleep = False
        self.register(self._ear, selectors.EVENT_READ)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        again = self._row.look()
        self.asleep = True  # set before `_due` is read: a thread that adds something later sees it
        if again is not None:
            timeout = again if timeout is None else min(again, timeout)
        elif self._due:
            timeout = 0
        events = super().select(timeout)
        self.asleep = False
        for place, (key, _) in enumerate(events):
            if key.fileobj is self._ear:
                self._ear.recv(64)
                del events[place]
                break
        if self._due:
            self._awake()
        return events

    def ring(self) -> None:
        """Wake the loop from another thread."""
        try:
            self.asleep = False
            self._bell.send(b"\0")
        except OSError:  # closed
            pass
        except BaseException:  # Ctrl-C: the next call wakes it
            self.asleep = True
            raise

    def close(self) -> None:
        super().close()
        self._ear.close()
        self._bell.close()


class LoopThread:
    """A thread that runs an event loop until `stop`."""

    def __init__(self) -> None:
        self._due: collections.deque[Due] = collections.deque()
        self.row = Row(self._wake_for_due)
        self._selector = DueSelector(self._due, self.row, lambda: self._loop.call_soon(self._run_due))
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self.lock_of_futures = threading.Condition()
        self._pid = os.getpid()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="rocketmq", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        self.row.wake_all()

    @property
    def is_ours(self) -> bool:
        """True in the process that started the thread, False in a fork of it."""
        return os.getpid() == self._pid

    def check_caller(self) -> None:
        """Raise ClientStateError in a thread that runs an event loop, ForkedProcess in a fork."""
        pid = os.getpid()
        if pid != self._pid:
            raise ForkedProcess(self._pid, pid)
        check_no_loop()

    # functions to call

    def soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Call the function in the loop, with the current contextvars. Raises ClientStateError once the thread is stopped.

        Functions added while the loop is awake do not wake it; those added during one sleep wake it once.
        """
        self._due.append((contextvars.copy_context(), function, arguments))
        if self._stopped:  # else it is called: the loop ends after it
            raise ClientStateError("this client was stopped in another thread during the call")
        if self._selector.asleep and not self.row.moves:
            self._selector.ring()

    def _wake_for_due(self) -> None:
        if self._due and self._selector.asleep:
            self._selector.ring()

    def _run_due(self) -> None:
        due = self._due
        for _ in range(len(due)):
            context, function, arguments = due.popleft()
            try:
                context.run(function, *arguments)
            except Exception as error:
                self._loop.call_exception_handler({"message": f"{function} failed", "exception": error})

    def stop(self) -> None:
        """End the thread after the functions that are due. All that runs in its loop must have ended."""
        self._stopped = True
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self._loop.close()

    def _end(self) -> None:
        self._run_due()
        self._loop.stop()


def check_no_loop() -> None:
    """Raise ClientStateError in a thread that runs an event loop."""
    if asyncio._get_running_loop() is not None:  # unlike get_running_loop it creates no exception if none runs
        raise ClientStateError(
            "a blocking call would stop the event loop that runs in this thread: use the same names of twisted_mq.aio and "
            "await them (in Jupyter, too), or call in a thread: await asyncio.to_thread(...)"
        )
