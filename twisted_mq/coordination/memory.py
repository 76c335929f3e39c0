"""Implements the coordinator in memory: one tree and its sessions on a given clock, without threads or chance.

ensemble = MemoryEnsemble(clock)
coordinator = ensemble.coordinator()
coordinator.link.cut()              # and what else tests do to it: see Link
coordinator.expire()
ensemble.stop(); ensemble.start()   # the servers are gone for a while
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure
from zope.interface import implementer

from twisted_mq.coordination.interfaces import (
    Changed,
    CoordinationError,
    Create,
    ICoordinator,
    NoAnswer,
    Node,
    NotAllowed,
    Operation,
    SessionEvent,
    SessionLost,
)
from twisted_mq.coordination.link import Link
from twisted_mq.coordination.operations import below, check_operations, check_path
from twisted_mq.coordination.sessions import Sessions
from twisted_mq.coordination.settings import CONNECT_SECONDS, DEFAULT_SESSION_SECONDS
from twisted_mq.coordination.told import Listener, Told
from twisted_mq.coordination.tree import ROOT, Change, Tree

PINGS = 6
"""The number of pings in a session's time."""
UNANSWERED_PINGS = 2
"""After this many unanswered pings, the connection counts as lost."""

Result = TypeVar("Result")


class MemoryEnsemble:
    """The servers, as one. `clock` is theirs; `coordinator` makes clients, which may have clocks of their own.

    `monotonic` measures sessions; by default it is the clock's time.
    """

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        *,
        monotonic: Callable[[], float] | None = None,
        tree: Tree | None = None,
    ) -> None:
        self.clock = clock
        self.monotonic = monotonic or clock.seconds
        self.tree = Tree() if tree is None else tree
        self.sessions = Sessions(clock, self.monotonic, self.tree)
        self.runs = True
        self._attached: dict[MemoryCoordinator, None] = {}
        self.tree.told.append(self._changed)
        self.sessions.ended.append(self._ended)

    def coordinator(
        self,
        clock: interfaces.IReactorTime | None = None,
        *,
        monotonic: Callable[[], float] | None = None,
        session_seconds: float = DEFAULT_SESSION_SECONDS,
        chroot: str = "",
    ) -> MemoryCoordinator:
        """Return a client, not started. By default it has the ensemble's clocks; `monotonic` is the time of a clock of
        its own.
        """
        own = monotonic or (self.monotonic if clock is None else clock.seconds)
        return MemoryCoordinator(self, self.clock if clock is None else clock, own, session_seconds, chroot)

    def stop(self) -> None:
        """Fault: no client gets an answer, no session ends."""
        self.runs = False
        self.sessions.suspend()
        for client in tuple(self._attached):
            client.break_connection()

    def start(self) -> None:
        """End `stop`: each session has its whole time again, as after the election of a leader."""
        self.runs = True
        self.sessions.resume()

    def apply(self, operations: Iterable[Operation], session: int) -> tuple[str, ...]:
        """Apply operations to the tree, now."""
        return self.tree.apply(operations, session, int(self.clock.seconds() * 1000))

    def attach(self, client: MemoryCoordinator) -> None:
        """Send the client changes and its session's end."""
        self._attached[client] = None

    def detach(self, client: MemoryCoordinator) -> None:
        """End `attach`."""
        self._attached.pop(client, None)

    def _changed(self, changes: Sequence[Change]) -> None:
        for client in tuple(self._attached):
            client.tell_changes(changes)

    def _ended(self, session: int) -> None:
        for client in tuple(self._attached):
            if client.session_id == session:
                client.tell_end()


@implementer(ICoordinator)
class MemoryCoordinator:
    """A client. `link` carries its requests and takes the faults."""

    def __init__(
        self,
        ensemble: MemoryEnsemble,
        clock: interfaces.IReactorTime,
        monotonic: Callable[[], float],
        session_seconds: float,
        chroot: str,
    ) -> None:
        self.session_id = 0
        self.session_seconds = session_seconds
        self.link = Link(ensemble.clock, clock, self.break_connection)
        self._ensemble = ensemble
        self._clock = clock
        self._monotonic = monotonic
        self._chroot = chroot
        self._told = Told()
        self._watched: set[str] = set()
        self._pending: dict[defer.Deferred[Any], None] = {}
        self._started: defer.Deferred[None] | None = None
        self._connected = False
        self._confirmed = 0.0
        self._unanswered = 0
        self._timers: dict[str, interfaces.IDelayedCall] = {}

    def start(self) -> defer.Deferred[None]:
        """See ICoordinator."""
        self._started = defer.Deferred()
        refusal = NoAnswer(f"the coordinator in memory did not answer within {CONNECT_SECONDS} s")
        self._later("start", CONNECT_SECONDS, lambda: self._refused(refusal))
        self._later("ping", self.session_seconds / PINGS, self._ping)
        self._connect()
        return self._started

    def stop(self) -> defer.Deferred[None]:
        """See ICoordinator."""
        ending = self._ask(self._leave)
        ending.addTimeout(self.session_seconds / PINGS, self._clock)
        return ending.addBoth(lambda _: self._end(SessionLost("this client of the coordinator was stopped")))

    def holds(self) -> bool:
        """See ICoordinator."""
        return self.session_id != 0 and self._monotonic() - self._confirmed < self.session_seconds / 2

    def listen(self, listener: Listener) -> Callable[[], None]:
        """See ICoordinator."""
        return self._told.listen(listener)

    def read(self, path: str) -> defer.Deferred[Node | None]:
        """See ICoordinator."""
        place = below(self._chroot, check_path(path))
        return self._ask(lambda: self._read(place))

    def children(self, path: str) -> defer.Deferred[tuple[str, ...]]:
        """See ICoordinator."""
        place = below(self._chroot, check_path(path))
        return self._ask(lambda: tuple(self._ensemble.tree.children(place)))

    def watch(self, path: str, changed: Changed) -> Callable[[], None]:
        """See ICoordinator."""
        end = self._told.watch(check_path(path), changed, lambda path: self._watched.discard(below(self._chroot, path)))
        if self._connected:
            self._register([path])
        return end

    def commit(self, operations: Sequence[Operation]) -> defer.Deferred[tuple[str, ...]]:
        """See ICoordinator."""
        checked = check_operations(operations)
        return self._ask(lambda: self._commit(checked))

    def expire(self) -> None:
        """Fault: the server ends the session now."""
        self._ensemble.sessions.end(self.session_id)

    def break_connection(self) -> None:
        """Lose the connection; calls that wait for an answer fail with NoAnswer."""
        if self._connected:
            self._disconnect(NoAnswer("the connection to the coordinator in memory was lost"))
            self._later("connect", self.session_seconds / PINGS / 2, self._connect)
            self._told.event(SessionEvent.DISCONNECTED)

    def tell_changes(self, changes: Sequence[Change]) -> None:
        """Send the client the changes of nodes that it watches (the server's side)."""
        paths = dict.fromkeys(path for _, path in changes if path in self._watched)
        if paths:
            told = [path[len(self._chroot) :] or ROOT for path in paths]
            self.link.event(lambda: self._told.changed(told))

    def tell_end(self) -> None:
        """Send the client that its session is over (the server's side)."""
        self._ensemble.detach(self)
        self.link.down(self._lost)

    def _ask(self, work: Callable[[], Result]) -> defer.Deferred[Result]:
        """Have the server do it in this session."""
        asked: defer.Deferred[Result] = defer.Deferred()
        if self._connected:
            self._pending[asked] = None
            self.link.up(lambda: self._serve(work, asked))
        else:
            unreachable = NoAnswer("not connected") if self.session_id else SessionLost("no session")
            self._clock.callLater(0, asked.errback, unreachable)
        return asked

    def _serve(self, work: Callable[[], Result], asked: defer.Deferred[Result]) -> None:
        """Do the server's side of `_ask`; a client that has lost its session learns that anyway."""
        if not self._ensemble.sessions.touch(self.session_id):
            return
        outcome: Result | failure.Failure
        try:
            outcome = work()
        except CoordinationError:
            outcome = failure.Failure()
        self.link.down(lambda: self._answer(asked, outcome))

    def _answer(self, asked: defer.Deferred[Result], outcome: Result | failure.Failure) -> None:
        if asked in self._pending:
            del self._pending[asked]
            asked.callback(outcome)

    def _read(self, path: str) -> Node | None:
        node = self._ensemble.tree[path]
        return None if node is None else Node(node.data, node.version, node.session)

    def _commit(self, operations: Sequence[Operation]) -> tuple[str, ...]:
        placed = [attrs.evolve(one, path=below(self._chroot, one.path)) for one in operations]
        paths = self._ensemble.apply(placed, self.session_id)
        if self.link.answer_is_dropped:
            self.link.answer_is_dropped = False
            self.break_connection()
        created = (path for path, one in zip(paths, operations, strict=True) if isinstance(one, Create))
        return tuple(path[len(self._chroot) :] for path in created)

    def _leave(self) -> None:
        self._ensemble.detach(self)
        self._ensemble.sessions.end(self.session_id)

    def _register(self, paths: Iterable[str]) -> None:
        """Set watches on these nodes, and report them once they are set."""
        told = tuple(paths)
        places = [below(self._chroot, path) for path in told]
        asked = self._ask(lambda: self._watched.update(places))
        # without an answer, the next CONNECTED reports them
        asked.addCallbacks(lambda _: self._told.changed(told), lambda reason: reason.trap(CoordinationError))

    def _connect(self) -> None:
        started = self._monotonic()
        self.link.close()
        self._later("connect", self.session_seconds / 3, self._connect)
        self.link.up(lambda: self._accept(started))

    def _accept(self, started: float) -> None:
        """Do the server's side of `_connect`."""
        ensemble = self._ensemble
        if not ensemble.runs:
            return
        if self.session_id and not ensemble.sessions.touch(self.session_id):
            self.link.down(self._lost)
        elif ensemble.tree[self._chroot or ROOT] is None:
            refusal = NotAllowed(f"the coordinator has no node {self._chroot}: create it, or correct the address")
            self.link.down(lambda: self._refused(refusal))
        else:
            session = self.session_id or ensemble.sessions.open(self.session_seconds)
            ensemble.attach(self)
            self._watched = {below(self._chroot, path) for path in self._told.paths}
            self.link.down(lambda: self._accepted(session, started))

    def _accepted(self, session: int, started: float) -> None:
        self.session_id = session
        self._confirmed = started
        if not self.holds():  # the answer took too long to rely on it
            self._connect()
            return
        self._connected = True
        self._unanswered = 0
        self._cancel("connect", "start")
        self._told.event(SessionEvent.CONNECTED)
        late = [path for path in self._told.paths if below(self._chroot, path) not in self._watched]
        if late:
            self._register(late)
        if self._started is not None:
            started_now, self._started = self._started, None
            started_now.callback(None)

    def _refused(self, error: CoordinationError) -> None:
        if self._started is not None:
            self._end(error)

    def _lost(self) -> None:
        self.session_id = 0
        self._disconnect(
            SessionLost(
                "the session expired: the coordinator received nothing from this client for the session timeout"
            )
        )
        self._told.event(SessionEvent.LOST)
        self._connect()

    def _disconnect(self, error: CoordinationError) -> None:
        self._connected = False
        self._ensemble.detach(self)
        self.link.close()
        pending, self._pending = self._pending, {}
        for asked in pending:
            asked.errback(error)

    def _end(self, error: CoordinationError) -> None:
        self.session_id = 0
        self._cancel(*self._timers)
        self._disconnect(error)
        if self._started is not None:
            started, self._started = self._started, None
            started.errback(error)

    def _ping(self) -> None:
        self._later("ping", self.session_seconds / PINGS, self._ping)
        if not self._connected:
            return
        if self._unanswered >= UNANSWERED_PINGS:
            self.break_connection()
            return
        self._unanswered += 1
        started = self._monotonic()
        self._ask(lambda: None).addCallbacks(
            lambda _: self._confirm(started), lambda reason: reason.trap(CoordinationError)
        )

    def _confirm(self, started: float) -> None:
        self._confirmed = started
        self._unanswered = 0

    def _later(self, name: str, seconds: float, work: Callable[[], object]) -> None:
        """Start a timer for a name, one for each name; a paused process runs its due timers when it goes on."""
        self._cancel(name)
        self._timers[name] = self._clock.callLater(seconds, lambda: self.link.run(work))

    def _cancel(self, *names: str) -> None:
        for name in names:
            timer = self._timers.get(name)
            if timer is not None and timer.active():
                timer.cancel()
