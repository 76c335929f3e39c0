"""Writes a table of the broker after it changed: in a thread, from a snapshot, once for all changes meanwhile.

A table that changes all the time is written a part of the time: a large one would occupy the interpreter otherwise.
A write that fails is logged once and tried again until it succeeds, so that a disk that is full for a moment loses
nothing that was acknowledged. Callers that have to wait for the disk use `when_saved`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer, interfaces

from twisted_mq.logs import Logger

RETRY_SECONDS = 5.0
REST = 3.0
"""The time between two writes, as a multiple of the first one's."""

InThread = Callable[[Callable[[], object]], "defer.Deferred[object]"]
"""Runs a call in a thread; a test runs it at once."""


class SavedTable(Protocol):
    """A table in one file."""

    def snapshot(self) -> Callable[[], object]:
        """Return a function that writes the table as it is now, in any thread. The function raises OSError."""


class TableSaver:
    """Writes one table. Call `touch` after a change; at most one write is in progress."""

    log = Logger()

    def __init__(self, name: str, table: SavedTable, clock: interfaces.IReactorTime, in_thread: InThread) -> None:
        self._name = name
        self._table = table
        self._clock = clock
        self._in_thread = in_thread
        self._dirty = False
        self._failing = self._abandoned = False
        self._writing: defer.Deferred[object] | None = None
        self._retry: interfaces.IDelayedCall | None = None
        self._waiting: list[defer.Deferred[None]] = []
        """Fire once changes are on disk that came after the write in progress began."""
        self._covered: list[defer.Deferred[None]] = []
        """Fire when the write in progress has ended."""

    @property
    def is_saved(self) -> bool:
        """True if all changes are on disk."""
        return not self._dirty and self._writing is None

    def touch(self) -> None:
        """Write the table soon, because it changed."""
        self._dirty = True
        if self._writing is None and self._retry is None:
            self._write()

    def when_saved(self) -> defer.Deferred[None]:
        """Fire when all changes made so far are on disk, perhaps together with later ones."""
        if self.is_saved:
            return defer.succeed(None)
        waiting: defer.Deferred[None] = defer.Deferred(self._waiting_is_over)
        (self._waiting if self._dirty else self._covered).append(waiting)
        return waiting

    def _waiting_is_over(self, waiting: defer.Deferred[None]) -> None:
        (self._waiting if waiting in self._waiting else self._covered).remove(waiting)

    def _write(self) -> None:
        self._retry, self._dirty = None, False
        self._covered, self._waiting = [*self._covered, *self._waiting], []
        self._writing = defer.Deferred()
        began = self._clock.seconds()
        done = self._in_thread(self._table.snapshot())
        done.addCallbacks(self._written, self._failed, callbackArgs=(began,))

    def _written(self, _: object, began: float) -> None:
        self._failing = False
        covered, self._covered = self._covered, []
        self._ended()
        if self._dirty and not self._abandoned:
            self._rest(REST * (self._clock.seconds() - began))
        for one in covered:
            one.callback(None)

    def _rest(self, seconds: float) -> None:
        if seconds > 0:
            self._retry = self._clock.callLater(seconds, self._write)
        else:
            self._write()

    def _failed(self, reason: object) -> None:
        if not self._failing:
            self.log.error("{name} not written, retrying: {reason}", name=self._name, reason=reason)
        self._failing = self._dirty = True
        if not self._abandoned:
            self._retry = self._clock.callLater(RETRY_SECONDS, self._write)
        self._ended()

    def _ended(self) -> None:
        ended, self._writing = self._writing, None
        if ended is not None:
            ended.callback(None)

    def abandon(self) -> None:
        """Write nothing more, not even after a failure: the broker did not start."""
        self._abandoned = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    async def stop(self) -> None:
        """Write outstanding changes, once more if the last try failed; cancel pending `when_saved`."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        while self._writing is not None:
            await self._writing
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._dirty:
            self._dirty = False
            try:
                await self._in_thread(self._table.snapshot())
            except OSError as error:
                self.log.error(
                    "{name}: table not saved at the stop, the old one stays on disk: {e}", name=self._name, e=error
                )
        for one in (*self._covered, *self._waiting):
            one.cancel()
