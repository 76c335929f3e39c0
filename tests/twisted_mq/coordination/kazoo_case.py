"""The contract through kazoo, against a server on loopback: ZooKeeper's own or this project's."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.serialization import Close, Connect, int_int_struct, int_struct
from twisted.internet import defer, reactor, task, threads
from twisted.trial.unittest import TestCase
from zope.interface.verify import verifyObject

from tests.support.cut_link import CutLink
from tests.twisted_mq.coordination.contract import CoordinatorContract, Hooks
from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.coordination.zookeeper import ZooKeeperCoordinator

SESSION_SECONDS = 4.0
PATIENCE_SECONDS = 60
POLL_SECONDS = 0.01
OWNER = [("digest", "mq:secret")]
"""Credentials that may delete nodes that tests protect."""


class KazooCase(TestCase, Hooks):
    """`server_port` is where the server listens."""

    server_port: int
    timeout = 300

    @defer.inlineCallbacks
    def setUp(self) -> Any:
        self.links: dict[ICoordinator, CutLink] = {}
        self.coordinators: list[ICoordinator] = []
        yield self.in_client(clean)

    @defer.inlineCallbacks
    def tearDown(self) -> Any:
        for link in self.links.values():
            link.heal()
        yield defer.gatherResults([coordinator.stop() for coordinator in self.coordinators])
        yield defer.gatherResults([link.stop() for link in self.links.values()])

    def in_client(self, work: Callable[[KazooClient], Any]) -> defer.Deferred[Any]:
        """Do it with a client of kazoo, in a thread."""

        def run() -> Any:
            client = KazooClient(f"127.0.0.1:{self.server_port}", timeout=SESSION_SECONDS, auth_data=OWNER)
            client.start(PATIENCE_SECONDS)
            try:
                return work(client)
            finally:
                client.stop()
                client.close()

        return threads.deferToThread(run)

    def coordinator(self, chroot: str = "/mq", **settings: Any) -> ZooKeeperCoordinator:
        link = CutLink(reactor, self.server_port)
        coordinator = self.direct(f"127.0.0.1:{link.port}{chroot}", **settings)
        self.links[coordinator] = link
        return coordinator

    def direct(self, address: str, **settings: Any) -> ZooKeeperCoordinator:
        """A client without a link that could be cut."""
        options = {"session_seconds": SESSION_SECONDS, **settings}
        coordinator = ZooKeeperCoordinator(
            CoordinatorSettings(parse_address(address), **options), reactor, reactor.callFromThread
        )
        verifyObject(ICoordinator, coordinator)
        self.coordinators.append(coordinator)
        return coordinator

    def unreachable(self) -> ICoordinator:
        coordinator = self.coordinator(connect_seconds=1.0)
        self.cut(coordinator)
        return coordinator

    async def wait(self, waited: Awaitable[Any]) -> Any:
        return await defer.ensureDeferred(waited).addTimeout(PATIENCE_SECONDS, reactor)

    async def until(self, promise: Callable[[], object]) -> None:
        for _ in range(round(PATIENCE_SECONDS / POLL_SECONDS)):
            if promise():
                return
            await self.pass_seconds(POLL_SECONDS)
        self.fail(f"not within {PATIENCE_SECONDS} seconds")

    async def pass_seconds(self, seconds: float) -> None:
        await task.deferLater(reactor, seconds)

    async def expire(self, coordinator: ICoordinator) -> None:
        """Another connection goes on with the session, and closes it."""
        await threads.deferToThread(end_session, self.server_port, *coordinator._session.client_id)

    def cut(self, coordinator: ICoordinator) -> None:
        self.links[coordinator].cut()

    def heal(self, coordinator: ICoordinator) -> None:
        self.links[coordinator].heal()


def end_session(port: int, session_id: int, password: bytes) -> None:
    """Both requests in one write: between them its own client would take the session back, again and again."""
    went_on = Connect(0, 0, round(SESSION_SECONDS * 1000), session_id, password, None).serialize()
    closed = int_int_struct.pack(1, Close.type)
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
        connection.sendall(b"".join(int_struct.pack(len(request)) + request for request in (went_on, closed)))
        while connection.recv(1024):
            pass


def clean(client: KazooClient) -> None:
    """Nothing but an empty `/mq`."""
    for name in client.get_children("/"):
        if name != "zookeeper":
            client.delete(f"/{name}", recursive=True)
    client.create("/mq")


class KazooContract(KazooCase, CoordinatorContract):
    """All of the contract."""
