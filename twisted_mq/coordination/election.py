"""Elects a leader among several candidates: the one whose node below a path has the smallest number, which is its term.

A candidate's node is `n-SESSION-NAME-NUMBER`, ephemeral and sequential: terms below one path only rise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.coordination.interfaces import (
    Conflict,
    CoordinationError,
    Create,
    Delete,
    ICoordinator,
    NoAnswer,
    SessionEvent,
    SessionLost,
)
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.logs import Logger

DIGITS = 10


def term_of(name: str) -> int | None:
    """Return the number at the end of a candidate's name; None for another kind of name."""
    digits = name[-DIGITS:]
    is_ours = name.startswith("n-") and len(digits) == DIGITS and digits.isascii() and digits.isdigit()
    return int(digits) if is_ours else None


def leader_of(names: Iterable[str]) -> str | None:
    """Return the leader's name among a path's children; None without candidates."""
    candidates = [(term, name) for name in names if (term := term_of(name)) is not None]
    return min(candidates)[1] if candidates else None


def leading_term(names: Iterable[str]) -> int | None:
    """Return the leader's term."""
    leader = leader_of(names)
    return None if leader is None else term_of(leader)


def candidate_of(name: str) -> str:
    """Return the name of the candidate that has this node."""
    return name.split("-", 2)[2][: -DIGITS - 1]


class Candidate:
    """A candidate from `start` on. In each session it joins again, after those that are there.

    `leads` is called with the term when it becomes the leader, `lost` when it no longer is: each once, in turn. Between
    them, the code that acts as the leader calls `is_leader` before each step, because the session may have ended without
    a sign. `behind` is called with the node's name of the leader when another one leads, each time that changes.
    `refused` is called with the reason that keeps it from being a candidate, if a person has to act. `name` tells
    candidates of one session below one path apart; `data` is for other readers.
    """

    log = Logger()

    def __init__(
        self,
        coordinator: ICoordinator,
        path: str,
        *,
        leads: Callable[[int], object],
        lost: Callable[[], object],
        behind: Callable[[str], object] = lambda leader: None,
        refused: Callable[[CoordinationError], object] = lambda problem: None,
        name: str = "c",
        data: bytes = b"",
    ) -> None:
        self.path = path
        self.term: int | None = None
        """Set while it leads."""
        self.leader: str | None = None
        """The node's name of another leader, as it was last seen."""
        self.problem: CoordinationError | None = None
        """The reason that it is not a candidate, if a person has to act."""
        self._coordinator = coordinator
        self._leads = leads
        self._lost = lost
        self._behind = behind
        self._refused = refused
        self._name = name
        self._data = data
        self._ends: list[Callable[[], None]] = []
        self._looks = False
        self._again = False

    @property
    def is_leader(self) -> bool:
        """Return True if it surely leads now."""
        return self.term is not None and self._coordinator.holds()

    def start(self) -> None:
        """Become a candidate. Needs no connection yet."""
        self._ends = [
            self._coordinator.listen(self._session_event),
            self._coordinator.watch(self.path, self._look),
        ]

    def stop(self) -> defer.Deferred[None]:
        """Stop being a candidate. Its node is gone when this fires, or goes with the session. Calls nothing back."""
        for end in self._ends:
            end()
        self._ends = []
        self.term = None
        return defer.Deferred.fromCoroutine(self._withdraw())

    def _prefix(self) -> str:
        return f"n-{self._coordinator.session_id & (2**64 - 1):x}-{self._name}-"

    def _session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.LOST:
            self._no_longer()

    def _no_longer(self) -> None:
        if self.term is not None:
            self.term = None
            self._lost()

    def _look(self) -> None:
        """Look at the candidates, one look at a time; a change meanwhile causes another look."""
        self._again = True
        if not self._looks:
            self._looks = True
            defer.Deferred.fromCoroutine(self._look_until_settled()).addErrback(self._failed)

    async def _look_until_settled(self) -> None:
        try:
            while self._again and self._ends:
                self._again = False
                await self._look_once()
        except (NoAnswer, SessionLost):
            pass  # CONNECTED makes it look again
        except CoordinationError as problem:
            self.problem = problem
            self.log.error("candidate below {path} not registered: {problem}", path=self.path, problem=problem)
            self._refused(problem)
        finally:
            self._looks = False

    async def _look_once(self) -> None:
        names = await self._coordinator.children(self.path)
        prefix = self._prefix()
        own = sorted(name for name in names if name[:-DIGITS] == prefix and term_of(name) is not None)
        if not self._ends:
            return
        if not own:
            self._no_longer()
            await self._stand()
            self._again = True
            return
        self.problem = None
        leader = leader_of(names)
        if own[0] != leader:
            self._no_longer()
            if leader != self.leader and leader is not None:
                self.leader = leader
                self._behind(leader)
        elif self.term is None:
            self.leader = None
            self.term = term_of(own[0])
            assert self.term is not None
            self._leads(self.term)

    async def _stand(self) -> None:
        try:
            await self._coordinator.commit([self._new_node()])
        except Conflict:
            await make_paths(self._coordinator, [self.path])
            await self._coordinator.commit([self._new_node()])
        if not self._ends:
            await self._withdraw()

    def _new_node(self) -> Create:
        return Create(f"{self.path}/{self._prefix()}", self._data, ephemeral=True, sequential=True)

    async def _withdraw(self) -> None:
        """Delete its own nodes: several if an answer got lost."""
        prefix = self._prefix()
        try:
            for name in await self._coordinator.children(self.path):
                if name[:-DIGITS] == prefix:
                    await self._coordinator.commit([Delete(f"{self.path}/{name}")])
        except CoordinationError:
            pass  # they go with the session

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("candidate below {path} failed", reason, path=self.path)
