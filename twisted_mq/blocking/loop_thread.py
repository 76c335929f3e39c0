"""The event loop of plain calls, in a thread of its own: what others have it call, and what their callers wait for."""

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
"""To be called: in these contextvars, this function, with these arguments."""


class DueSelector(selectors.DefaultSelector):
    """The selector of a loop's thread: before the loop sleeps, it looks whether any thread has a function to be called.

    So threads wake the loop while it sleeps, and only then.
    """

    def __init__(self, due: Sized, row: Row, awake: Callable[[], object]) -> None:
        """`awake` is called where something is due after a sleep."""
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
        self.asleep = True  # before the look at what is due: who adds something after it finds this set
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
        """Wake the loop, in another thread."""
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
        """Whether this is the process that started it, and no child of that."""
        return os.getpid() == self._pid

    def check_caller(self) -> None:
        """Raises ClientStateError in a thread that runs an event loop, ForkedProcess in a child of this process."""
        pid = os.getpid()
        if pid != self._pid:
            raise ForkedProcess(self._pid, pid)
        check_no_loop()

    # what is to be called

    def soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the loop call the function, in the contextvars of now. Raises ClientStateError once the thread is stopped.

        Calls that come before the loop sleeps do not wake it, those that come before it is awake wake it once.
        """
        self._due.append((contextvars.copy_context(), function, arguments))
        if self._stopped:  # else it is called: the end of the loop comes behind it
            raise ClientStateError("this was stopped in another thread meanwhile")
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
        """End the thread, after all that was to be called; what ran in its loop has ended before."""
        self._stopped = True
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self._loop.close()

    def _end(self) -> None:
        self._run_due()
        self._loop.stop()


def check_no_loop() -> None:
    """Raises ClientStateError in a thread that runs an event loop."""
    if asyncio._get_running_loop() is not None:  # other than get_running_loop it makes no exception where none runs
        raise ClientStateError(
            "a blocking call would stop the event loop that runs in this thread: use the same names of twisted_mq.aio and "
            "await them (in Jupyter, too), or call in a thread: await asyncio.to_thread(...)"
        )
