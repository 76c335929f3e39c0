"""What the flush thread says to those who wait for the disk, handed to the reactor's thread: all of one flush in one call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from twisted.internet import defer

from twisted_mq.reactor_threads import CallFromThread
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.storage.interfaces import IMessageStore


class FlushAnswers:
    """Of one store. `dispatch` follows once all are answered, in the same turn of the reactor: what was flushed is shown."""

    def __init__(
        self, store: IMessageStore, call_from_thread: CallFromThread, late: LateAnswers, dispatch: Callable[[], object]
    ) -> None:
        self._store = store
        self._call_from_thread = call_from_thread
        self._late = late
        self._dispatch = dispatch
        self._told: deque[tuple[defer.Deferred[bool], bool]] = deque()
        self._called = False

    def flushed(self, offset: int) -> defer.Deferred[bool]:
        """Fires when the log is on disk up to `offset` (True) or that took too long (False)."""
        waiting: defer.Deferred[bool] = defer.Deferred()
        self._store.when_flushed(offset, partial(self._tell, waiting))
        return waiting

    def _tell(self, waiting: defer.Deferred[bool], done: bool) -> None:
        """In any thread. Who is told while a call is on its way is answered by it, or by one more that finds nothing."""
        self._told.append((waiting, done))
        if not self._called:
            self._called = True
            self._call_from_thread(self._answer)

    def _answer(self) -> None:
        self._called = False
        with self._late.together():
            while self._told:
                waiting, done = self._told.popleft()
                waiting.callback(done)
        self._dispatch()
