"""Keeps a broker's own node in the coordinator: ephemeral, created again in each session, with the broker's state."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.coordination.interfaces import (
    Conflict,
    CoordinationError,
    Create,
    ICoordinator,
    NoAnswer,
    Node,
    Put,
    SessionLost,
)
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.logs import Logger
from twisted_mq.ordering.documents import BrokerMember, encode_member
from twisted_mq.ordering.paths import member_path, members_path


class MemberNode:
    """Keeps the node as `show` says. An earlier process's node ends with its session; until then this one waits.

    `deleted` is called before the node is created a second time in one session: its slave may have acted for the group meanwhile.
    """

    log = Logger()

    def __init__(
        self, coordinator: ICoordinator, group: str, broker_id: int, deleted: Callable[[], object] = lambda: None
    ) -> None:
        self.path = member_path(group, broker_id)
        self._parent = members_path(group)
        self._coordinator = coordinator
        self._member: BrokerMember | None = None
        self._keeps = False
        self._again = False
        self._foreign = 0
        self._deleted = deleted
        self._made_in = 0
        self._end = coordinator.watch(self.path, self._keep)

    def show(self, member: BrokerMember) -> None:
        """Set the state that the node shows from now on."""
        if member != self._member:
            self._member = member
            self._keep()

    def stop(self) -> None:
        """Leave the node until the end of the session."""
        self._end()
        self._member = None

    def _keep(self) -> None:
        self._again = True
        if not self._keeps and self._member is not None:
            self._keeps = True
            defer.ensureDeferred(self._keep_it()).addErrback(self._failed)

    async def _keep_it(self) -> None:
        try:
            while self._again and self._member is not None:
                self._again = False
                await self._try(self._member)
        finally:
            self._keeps = False

    async def _try(self, member: BrokerMember) -> None:
        coordinator, data = self._coordinator, encode_member(member)
        try:
            node = await coordinator.read(self.path)
            if node is None:
                if self._made_in == coordinator.session_id:
                    self._deleted()
                self._made_in = coordinator.session_id
                await make_paths(coordinator, [self._parent])
                await coordinator.commit([Create(self.path, data, ephemeral=True)])
            elif node.session != coordinator.session_id:
                self._tell_of(node)
            elif node.data != data:
                await coordinator.commit([Put(self.path, data, node.version)])
        except Conflict:
            self._again = True
        except (NoAnswer, SessionLost):
            pass  # CONNECTED makes the watch call again
        except CoordinationError as error:
            self.log.error("not registered in the coordinator: {path} {error}", path=self.path, error=error)

    def _tell_of(self, node: Node) -> None:
        if node.session != self._foreign:
            self._foreign = node.session
            self.log.info(
                "waits for the end of session {s}, which has {path}: {d}. It belongs to the last process of this broker, or "
                "another broker has the same name and id",
                s=f"{node.session:x}", path=self.path, d=node.data.decode(errors="replace"),
            )  # fmt: skip

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("{path} not kept", reason, path=self.path)
