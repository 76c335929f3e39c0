"""Runs a name server and broker groups of a master and a slave on one reactor: strictly ordered topics without ZooKeeper.

cluster = OrderedCluster(reactor)
await cluster.start()
... clients connect to cluster.name_server, and learn from the brokers where the coordinator is ...
await cluster.stop()

ZooKeeper's data is in this process's memory and is lost with it; so are the stores, in a temporary folder.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from twisted_mq.broker.machine import Machine
from twisted_mq.broker.options import BrokerOptions, BrokerRole
from twisted_mq.broker.service import BrokerService
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.server import CoordinationService
from twisted_mq.coordination.settings import boot_seconds
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import NamesrvService, make_namesrv
from twisted_mq.ordering.declaring import declare
from twisted_mq.ordering.documents import decode_lists
from twisted_mq.ordering.lists import OrderedTopic
from twisted_mq.ordering.paths import unit_path
from twisted_mq.protocol.bodies.topic_config import ORDER, ORDER_QUEUES, ORDER_TOGETHER
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.headers import CreateTopicRequestHeader
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.reactor_threads import threads_of
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.testing.cluster import LOOPBACK, SMALL_LOG_FILE_BYTES, Settings
from twisted_mq.testing.temporary_folder import TemporaryFolder

LOOK_SECONDS = 0.1

MASTER, SLAVE = 0, 1
ROLES = {MASTER: BrokerRole.SYNC_MASTER, SLAVE: BrokerRole.SLAVE}


class OrderedCluster:
    """The cluster. All listen on free ports of 127.0.0.1, except the name server if `namesrv_port` is given.

    `broker_options` are attributes of BrokerOptions, for all brokers. `brokers` are the running ones, by group and broker id.
    """

    def __init__(
        self,
        reactor: IReactorTime,
        *,
        groups: Sequence[str] = ("broker-a", "broker-b"),
        namesrv_port: int = 0,
        session_seconds: float = 6.0,
        broker_options: Settings | None = None,
    ) -> None:
        self.groups = tuple(groups)
        self.brokers: dict[tuple[str, int], BrokerService] = {}
        self.ensemble = MemoryEnsemble(reactor, monotonic=boot_seconds)
        self.namesrv: NamesrvService
        self._reactor = reactor
        self._temporary = TemporaryFolder("mq-ordered-")
        self._served = CoordinationService(self.ensemble, reactor)  # type: ignore[arg-type]  # it has sockets, too
        self._namesrv_port = namesrv_port
        self._session_seconds = session_seconds
        self._secret = secrets.token_hex(16)
        self._broker_options = dict(broker_options or {})
        self._servers: list[NamesrvService | CoordinationService] = []

    @property
    def store_path(self) -> str:
        """Return the folder with a store for each broker, created at the first call; `stop` or the end of the process
        removes it.
        """
        return self._temporary.path

    @property
    def name_server(self) -> str:
        """Return the name server's address."""
        return f"{LOOPBACK}:{self.namesrv.port}"

    @property
    def coordinator_address(self) -> str:
        """Return the address at which clients of ZooKeeper find the lists."""
        return f"{LOOPBACK}:{self._served.port}"

    def coordinator(self) -> ICoordinator:
        """Return a session with the lists for a client in this process, not started; it needs no kazoo."""
        return self.ensemble.coordinator(session_seconds=self._session_seconds)

    async def start(self) -> OrderedCluster:
        """Start all servers; all are registered when this returns. A failure is raised after everything was stopped."""
        try:
            self.namesrv = make_namesrv(self._options_of_namesrv(), self._reactor)
            for server in (self._served, self.namesrv):
                server.startService()
                self._servers.append(server)
            for broker_id in (MASTER, SLAVE):
                await _all([self._begin(group, broker_id) for group in self.groups])
        except BaseException:
            await self.stop()
            raise
        return self

    async def declare(self, topic: str, queues: int = 1, *, together: bool = False) -> None:
        """Create an ordered topic. Returns when all groups are in its send lists; the first one is the head."""
        declared = OrderedTopic(topic, queues, self.groups, together)
        client, coordinator = RemotingClient(self._reactor), self.coordinator()
        await coordinator.start()
        try:
            for group in self.groups:
                await client.invoke(f"{LOOPBACK}:{self.brokers[group, MASTER].port}", _creation(declared))
            await declare(coordinator, declared)
            while not await self._all_wait(coordinator, declared):
                await deferLater(self._reactor, LOOK_SECONDS)
        finally:
            await coordinator.stop()
            await client.close()

    async def _all_wait(self, coordinator: ICoordinator, declared: OrderedTopic) -> bool:
        paths = [unit_path(declared.topic, unit) for unit in declared.units]
        nodes = [(path, await coordinator.read(path)) for path in paths]
        return all(
            node is not None and set(decode_lists(path, node.data).send) == set(self.groups) for path, node in nodes
        )

    async def stop(self) -> None:
        """Stop all servers, close the stores and remove temporary ones. A second call does nothing."""
        for broker_id in (SLAVE, MASTER):
            stopping = [key for key in self.brokers if key[1] == broker_id]
            await _all([maybeDeferred(self.brokers.pop(key).stopService) for key in stopping])
        while self._servers:
            await maybeDeferred(self._servers.pop().stopService)
        if self._temporary.is_made:
            await threads_of(self._reactor)(self._temporary.remove)

    async def stop_broker(self, group: str, broker_id: int) -> None:
        """Stop one broker, as for its maintenance."""
        await self.brokers.pop((group, broker_id)).stopService()

    async def start_broker(self, group: str, broker_id: int) -> None:
        """Start a stopped broker again, on its store; it gets another port."""
        await self._begin(group, broker_id)

    def _begin(self, group: str, broker_id: int) -> Deferred[BrokerService]:
        broker = BrokerService(self._options_of(group, broker_id), self._reactor, self._machine())
        broker.startService()
        self.brokers[group, broker_id] = broker
        return broker.started

    def _machine(self) -> Machine:
        return Machine(coordinator=lambda options, reactor: self.coordinator())

    def _options_of(self, group: str, broker_id: int) -> BrokerOptions:
        options = BrokerOptions(
            mapped_file_size_commit_log=SMALL_LOG_FILE_BYTES,
            broker_name=group,
            broker_id=broker_id,
            broker_role=ROLES[broker_id],
            slave_read_enable=broker_id == SLAVE,
            ha_shared_secret=self._secret,
            bind_address=LOOPBACK,
            broker_ip1=LOOPBACK,
            listen_port=0,
            namesrv_addr=self.name_server,
            order_coordinator=self.coordinator_address,
            store_path_root_dir=os.path.join(self.store_path, f"{group}-{broker_id}"),
        )
        return attrs.evolve(options, **self._broker_options)

    def _options_of_namesrv(self) -> NamesrvOptions:
        return NamesrvOptions(
            bind_address=LOOPBACK,
            listen_port=self._namesrv_port,
            kv_config_path=os.path.join(self.store_path, "namesrv", "kvConfig.json"),
            config_store_path=os.path.join(self.store_path, "namesrv", "namesrv.properties"),
        )


def _creation(declared: OrderedTopic) -> RemotingCommand:
    header = CreateTopicRequestHeader(
        topic=declared.topic,
        default_topic=AUTO_CREATE_TOPIC,
        read_queue_nums=declared.queues,
        write_queue_nums=declared.queues,
        perm=PermName.PERM_READ | PermName.PERM_WRITE,
        topic_filter_type="SINGLE_TAG",
        order=False,
        attributes=f"+{ORDER}={ORDER_TOGETHER if declared.together else ORDER_QUEUES}",
    )
    return RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header))


async def _all(works: Sequence[Deferred[Any]]) -> None:
    """Wait for all, then raise the first failure."""
    for ok, result in await DeferredList(works, consumeErrors=True):
        if not ok:
            result.raiseException()
