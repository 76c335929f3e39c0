"""Passes the flush thread's results on to the requests that wait for the disk: all of one flush in one call to the
reactor's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from twisted.internet import defer

from twisted_mq.reactor_threads import CallFromThread
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.storage.errors import StoreClosed
from twisted_mq.storage.interfaces import IMessageStore


class FlushAnswers:
    """The waits for the disk of one store. `dispatch` is called after all were answered, in the same turn of the reactor,
    and makes the flushed messages visible.
    """

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
        """Fire when the log is on disk up to `offset` (True), or that took too long or the store is closed (False)."""
        waiting: defer.Deferred[bool] = defer.Deferred()
        try:
            self._store.when_flushed(offset, partial(self._tell, waiting))
        except StoreClosed:
            return defer.succeed(False)
        return waiting

    def _tell(self, waiting: defer.Deferred[bool], done: bool) -> None:
        """Pass on a result, from any thread. If a call to the reactor is pending, that call or one empty further call answers."""
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
