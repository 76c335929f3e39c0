"""Implements the coordinator with ZooKeeper, through kazoo: one session after the other, used on the reactor's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.handlers.utils import AsyncResult
from kazoo.protocol.states import EventType, WatchedEvent
from twisted.internet import defer, interfaces
from twisted.python import failure
from zope.interface import implementer

from twisted_mq.coordination.interfaces import (
    Changed,
    Conflict,
    CoordinationError,
    ICoordinator,
    NoAnswer,
    Node,
    NotAllowed,
    Operation,
    SessionEvent,
    SessionLost,
)
from twisted_mq.coordination.operations import check_operations, check_path
from twisted_mq.coordination.settings import CoordinatorSettings, boot_seconds
from twisted_mq.coordination.told import Listener, Told
from twisted_mq.coordination.zookeeper_operations import ADVICE, add_to, created_paths, node_of, translated
from twisted_mq.coordination.zookeeper_session import (
    Ask,
    Confirmed,
    Handler,
    Happened,
    Over,
    Unreachable,
    ZooKeeperSession,
)
from twisted_mq.logs import Logger
from twisted_mq.reactor_threads import CallFromThread

PAUSE = 12
"""The pause between two sessions is this part of a session's time."""

Result = TypeVar("Result")


@implementer(ICoordinator)
class ZooKeeperCoordinator:
    """A coordinator, see ICoordinator. `clock` and `call_from_thread` are the reactor's; `new_handler` makes kazoo's threads."""

    log = Logger()

    def __init__(
        self,
        settings: CoordinatorSettings,
        clock: interfaces.IReactorTime,
        call_from_thread: CallFromThread,
        monotonic: Callable[[], float] = boot_seconds,
        new_handler: Callable[[], Handler] = SequentialThreadingHandler,
    ) -> None:
        self.session_id = 0
        self.session_seconds = settings.session_seconds
        self._settings = settings
        self._clock = clock
        self._call_from_thread = call_from_thread
        self._monotonic = monotonic
        self._new_handler = new_handler
        self._told = Told()
        self._pending: dict[defer.Deferred[Any], None] = {}
        self._fired: dict[str, Callable[[WatchedEvent], None]] = {}
        self._arming: dict[str, bool] = {}
        """Paths whose watch is being set at the server, and whether it fired again meanwhile."""
        self._session: ZooKeeperSession | None = None
        """The session to ask; None without a connection."""
        self._held: ZooKeeperSession | None = None
        """The session with the id `session_id`: the thread may have the next one already."""
        self._connected = False
        self._stopping: threading.Event | None = None
        """The event that stops the running thread; None without a thread."""
        self._present: ZooKeeperSession | None = None
        self._started: defer.Deferred[None] | None = None
        self._stopped: list[defer.Deferred[None]] = []
        self._timer: interfaces.IDelayedCall | None = None

    def start(self) -> defer.Deferred[None]:
        """See ICoordinator."""
        started: defer.Deferred[None] = defer.Deferred()
        self._started = started
        self._timer = self._clock.callLater(self._settings.connect_seconds, self._not_connected)
        handler = self._new_handler()
        self._stopping = handler.event_object()
        handler.spawn(self._run, self._stopping).name = "zookeeper"
        return started

    def stop(self) -> defer.Deferred[None]:
        """See ICoordinator."""
        stopped: defer.Deferred[None] = defer.Deferred()
        if self._stopping is None:
            self._clock.callLater(0, stopped.callback, None)
            return stopped
        self._stopped.append(stopped)
        self._end(SessionLost("this client of the coordinator was stopped"))
        stopped.addTimeout(self.session_seconds, self._clock)
        return stopped.addErrback(lambda reason: _none(reason.trap(defer.TimeoutError)))

    def holds(self) -> bool:
        """See ICoordinator."""
        held = self._held
        return held is not None and self._monotonic() < held.holds_until

    def listen(self, listener: Listener) -> Callable[[], None]:
        """See ICoordinator."""
        return self._told.listen(listener)

    def read(self, path: str) -> defer.Deferred[Node | None]:
        """See ICoordinator."""
        check_path(path)
        found = self._ask(lambda client: client.get_async(path), lambda found: node_of(*found))
        return found.addErrback(lambda missing: _none(missing.trap(Conflict)))

    def children(self, path: str) -> defer.Deferred[tuple[str, ...]]:
        """See ICoordinator."""
        check_path(path)
        found = self._ask(lambda client: client.get_children_async(path), lambda names: tuple(sorted(names)))
        return found.addErrback(_nothing)

    def watch(self, path: str, changed: Changed) -> Callable[[], None]:
        """See ICoordinator."""
        end = self._told.watch(check_path(path), changed, lambda path: self._fired.pop(path, None))
        if self._session is not None:
            self._arm(path)
        return end

    def commit(self, operations: Sequence[Operation]) -> defer.Deferred[tuple[str, ...]]:
        """See ICoordinator."""
        checked = check_operations(operations)

        def transact(client: KazooClient) -> AsyncResult:
            transaction = client.transaction()
            for operation in checked:
                add_to(transaction, operation)
            return transaction.commit_async()

        return self._ask(transact, lambda results: created_paths(checked, results))

    def _ask(self, ask: Ask, answer: Callable[[Any], Result]) -> defer.Deferred[Result]:
        """Ask, and make the result with `answer` from what kazoo's call returns."""
        if self._connected:
            return self._send(ask, answer)
        unreachable = NoAnswer("no connection to ZooKeeper") if self.session_id else SessionLost("no session")
        asked: defer.Deferred[Result] = defer.Deferred()
        self._clock.callLater(0, asked.errback, unreachable)
        return asked

    def _send(self, ask: Ask, answer: Callable[[Any], Result]) -> defer.Deferred[Result]:
        asked: defer.Deferred[Result] = defer.Deferred()
        self._pending[asked] = None
        try:
            assert self._session is not None
            self._session.ask(ask, lambda result: self._call_from_thread(self._answer, asked, answer, result))
        except CoordinationError as error:
            del self._pending[asked]
            self._clock.callLater(0, asked.errback, error)
        return asked

    def _answer(self, asked: defer.Deferred[Result], answer: Callable[[Any], Result], result: AsyncResult) -> None:
        if asked not in self._pending:
            return
        del self._pending[asked]
        try:
            value = answer(result.get_nowait())
        except exceptions.KazooException as error:
            asked.errback(translated(error))
        except CoordinationError as error:
            asked.errback(error)
        else:
            asked.callback(value)

    def _arm(self, path: str) -> defer.Deferred[None]:
        """Set a watch for the node's next change at the server, and report a change now, as it may have changed since the
        last watch.
        """
        if path in self._arming:
            self._arming[path] = True
            return defer.succeed(None)
        self._arming[path] = False
        fired = self._fired.setdefault(path, lambda event: self._watch_fired(path, event))
        self._send(lambda client: client.exists_async(path, fired), bool).addErrback(_if_unanswered)
        listed = self._send(lambda client: client.get_children_async(path, fired), bool).addErrback(_if_unanswered)
        return listed.addCallback(lambda _: self._armed(path))

    def _armed(self, path: str) -> None:
        again = self._arming.pop(path, False)
        if again and self._session is not None:
            self._arm(path)
        elif self._connected:
            self._told.changed([path])

    def _watch_fired(self, path: str, event: WatchedEvent) -> None:
        """Handle a watch, on kazoo's thread for watches; at the end of a connection it fires all of them."""
        if event.type != EventType.NONE:
            self._call_from_thread(self._arm_again, path)

    def _arm_again(self, path: str) -> None:
        if self._session is not None and self._told.is_watched(path):
            self._arm(path)

    def _run(self, stopping: threading.Event) -> None:
        """Run one session after the other, on the thread."""
        while not stopping.is_set():
            try:
                self._run_session(stopping)
            except Exception:
                self.log.failure("session with ZooKeeper failed, starting another")
            stopping.wait(self._settings.session_seconds / PAUSE)
        self._call_from_thread(self._ended)

    def _run_session(self, stopping: threading.Event) -> None:
        session = ZooKeeperSession(
            self._settings,
            self._monotonic,
            lambda happened: self._call_from_thread(self._happened, stopping, session, happened),
            self._new_handler,
        )
        self._present = session
        if not stopping.is_set():
            session.run()

    def _happened(self, stopping: threading.Event, session: ZooKeeperSession, happened: Happened) -> None:
        if stopping.is_set():
            return
        match happened:
            case Confirmed():
                self._confirmed(session, happened)
            case Unreachable():
                self._disconnect(NoAnswer("the connection to ZooKeeper was lost"))
            case Over():
                self._lost()

    def _confirmed(self, session: ZooKeeperSession, confirmed: Confirmed) -> None:
        refusal = self._refusal(confirmed.problem)
        if self._started is not None and refusal is not None:
            self._end(refusal)
        elif self._monotonic() >= session.holds_until:
            session.confirm_again()
        else:
            self._session = session
            armed = [self._arm(path) for path in self._told.paths]
            defer.gatherResults(armed).addCallback(lambda _: self._connect(session, confirmed))

    def _refusal(self, problem: exceptions.KazooException | None) -> NotAllowed | None:
        chroot = self._settings.address.chroot or "/"
        if isinstance(problem, exceptions.NoNodeError):
            return NotAllowed(f"ZooKeeper has no node {chroot}: create it, or correct the address")
        if isinstance(problem, exceptions.NoAuthError):
            return NotAllowed(f"ZooKeeper refuses to read {chroot}: {ADVICE[NotAllowed]}")
        return None

    def _connect(self, session: ZooKeeperSession, confirmed: Confirmed) -> None:
        if session is not self._session or self._connected:
            return
        self._connected = True
        self._held = session
        self.session_id = confirmed.session_id
        self.session_seconds = confirmed.seconds
        self.log.info("connected to ZooKeeper: session {session:#x}", session=self.session_id & (2**64 - 1))
        self._told.event(SessionEvent.CONNECTED)
        self._settle(None)

    def _disconnect(self, error: CoordinationError) -> None:
        was_connected, self._connected = self._connected, False
        self._session = None
        self._fail(error)
        if was_connected:
            self.log.warn("no connection to ZooKeeper: {error}", error=error)
            self._told.event(SessionEvent.DISCONNECTED)

    def _lost(self) -> None:
        had_session, self.session_id = self.session_id != 0, 0
        self._held = None
        self._connected = False
        self._session = None
        self._fail(SessionLost("the session with ZooKeeper has ended"))
        if had_session:
            self.log.warn("the session with ZooKeeper has ended")
            self._told.event(SessionEvent.LOST)

    def _fail(self, error: CoordinationError) -> None:
        pending, self._pending = self._pending, {}
        for asked in pending:
            asked.errback(error)
        self._arming.clear()

    def _not_connected(self) -> None:
        problem = self._present.problem if self._present is not None else ""
        address, seconds = self._settings.address, self._settings.connect_seconds
        self._end(NoAnswer(f"no session with ZooKeeper at {address} in {seconds:g} s: {problem}"))

    def _end(self, error: CoordinationError) -> None:
        """End the session and the thread."""
        if self._stopping is not None:
            self._stopping.set()
            self._stopping = None
        if self._present is not None:
            self._present.end()
        self.session_id = 0
        self._held = None
        self._connected = False
        self._session = None
        self._fail(error)
        self._settle(error)

    def _settle(self, outcome: CoordinationError | None) -> None:
        """Fire what `start` waits for."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        started, self._started = self._started, None
        if started is not None and outcome is not None:
            started.errback(outcome)
        elif started is not None:
            started.callback(None)

    def _ended(self) -> None:
        stopped, self._stopped = self._stopped, []
        for each in stopped:
            each.callback(None)


def _none(_: object) -> None:
    return None


def _if_unanswered(reason: failure.Failure) -> None:
    """Ignore an error: a missing node is watched all the same, and without an answer the next CONNECTED sets the watch."""
    reason.trap(CoordinationError)


def _nothing(missing: failure.Failure) -> tuple[str, ...]:
    missing.trap(Conflict)
    return ()
