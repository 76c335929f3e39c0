"""Runs a name server and a broker on one reactor, for tests, `mq up` and the demo.

cluster = EmbeddedCluster(reactor)
await cluster.start()
... clients connect to cluster.name_server ...
await cluster.stop()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import attrs
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IReactorTime

from twisted_mq.broker.machine import Machine
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import BrokerService
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import NamesrvService
from twisted_mq.reactor_threads import threads_of
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import IsBatchTopic
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.testing.temporary_folder import TemporaryFolder


class KeptInMemory:
    """Opens the store for each start of a broker: always the same one, so that messages survive a restart."""

    def __init__(self) -> None:
        self._store: MemoryMessageStore | None = None
        self._is_batch_topic: IsBatchTopic = lambda topic: None

    def __call__(
        self, config: StoreConfig, now_ms: Callable[[], int], is_batch_topic: IsBatchTopic
    ) -> MemoryMessageStore:
        self._is_batch_topic = is_batch_topic
        if self._store is None:
            self._store = MemoryMessageStore(config, now_ms, is_batch_topic=lambda topic: self._is_batch_topic(topic))
        self._store.configure(config)
        self._store.start()
        return self._store


LOOPBACK = "127.0.0.1"

SMALL_LOG_FILE_BYTES = 16 * 1024 * 1024
"""The size of a log file of a temporary store; Apache's 1 GiB would be mapped for a few messages."""


Settings: TypeAlias = Mapping[str, Any]
"""Attribute of an options class -> its value; Any, because each attribute has a type of its own."""

Server = TypeVar("Server", NamesrvService, BrokerService)


class EmbeddedCluster:
    """A name server and a broker; port 0 takes a free port, which is known after `start`.

    Without `store_path` the store is in a temporary folder, which `stop` or the end of the process removes. With
    `in_memory` that folder holds only topics, groups and offsets, and messages are lost with this object. The servers run
    on `machine`. The options are attributes of BrokerOptions and NamesrvOptions and override the settings made here.
    """

    def __init__(
        self,
        reactor: IReactorTime,
        store_path: str | None = None,
        *,
        address: str = LOOPBACK,
        namesrv_port: int = 0,
        broker_port: int = 0,
        broker_options: Settings | None = None,
        namesrv_options: Settings | None = None,
        in_memory: bool = False,
        machine: Machine | None = None,
    ) -> None:
        self._reactor = reactor
        machine = machine or Machine()
        self._machine = attrs.evolve(machine, open_in_memory=KeptInMemory()) if in_memory else machine
        self._path = store_path
        self._temporary = TemporaryFolder("mq-store-")
        self._address = address
        self._ports = (namesrv_port, broker_port)
        self._broker_options = dict(broker_options or {})
        self._namesrv_options = dict(namesrv_options or {})
        self._running: list[NamesrvService | BrokerService] = []
        self.namesrv: NamesrvService
        self.broker: BrokerService

    @property
    def store_path(self) -> str:
        """Return the store's directory; a temporary one is created at the first call."""
        return self._temporary.path if self._path is None else self._path

    @property
    def name_server(self) -> str:
        """Return the name server's address."""
        return f"{self._reachable}:{self.namesrv.port}"

    @property
    def broker_address(self) -> str:
        """Return the broker's address."""
        return f"{self._reachable}:{self.broker.port}"

    @property
    def grpc_address(self) -> str:
        """Return the address for gRPC clients; empty if they are not served."""
        port = self.broker.grpc_port
        return f"{self._reachable}:{port}" if port else ""

    def serve_grpc(self) -> str:
        """Serve gRPC clients from now on, on a free port unless they are served already. Returns the address. Raises
        MissingExtra.
        """
        if not self.broker.grpc_port:
            self.broker.serve_grpc(0)
        return self.grpc_address

    @property
    def _reachable(self) -> str:
        return LOOPBACK if self._address in ("0.0.0.0", "::") else self._address

    async def start(self) -> EmbeddedCluster:
        """Start both servers; the broker is registered when this returns. A failure is raised after everything was stopped."""
        try:
            self.namesrv = self._started(self._make_namesrv())
            self.broker = self._started(self._make_broker())
            await self.broker.started
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """Stop both servers, close the store and remove a temporary one. A second call does nothing.

        If a server's stop fails, the rest is stopped all the same before the failure is raised.
        """
        try:
            while self._running:
                await maybeDeferred(self._running.pop().stopService)
        finally:
            if self._running:
                await self.stop()
            elif self._temporary.is_made:
                await threads_of(self._reactor)(self._temporary.remove)

    async def restart_broker(self) -> None:
        """Stop the broker and start another one on the same store and ports."""
        self._ports = self._ports[0], self.broker.port
        self._broker_options["grpc_server_port"] = self.broker.grpc_port or -1
        self._broker_options["ha_listen_port"] = int(self.broker.controller.ha_address.rpartition(":")[2])
        self._running.remove(self.broker)
        await self.broker.stopService()
        self.broker = self._started(self._make_broker())
        await self.broker.started

    def _make_namesrv(self) -> NamesrvService:
        return NamesrvService(self._options_of_namesrv(), self._reactor, bind=self._machine.bind)

    def _make_broker(self) -> BrokerService:
        return BrokerService(self._options_of_broker(), self._reactor, self._machine)

    def _started(self, service: Server) -> Server:
        self._running.append(service)
        service.startService()
        return service

    def _options_of_namesrv(self) -> NamesrvOptions:
        options = NamesrvOptions(
            bind_address=self._address,
            listen_port=self._ports[0],
            kv_config_path=os.path.join(self.store_path, "namesrv", "kvConfig.json"),
            config_store_path=os.path.join(self.store_path, "namesrv", "namesrv.properties"),
        )
        return attrs.evolve(options, **self._namesrv_options)

    def _options_of_broker(self) -> BrokerOptions:
        options = BrokerOptions(
            broker_name="broker-a",
            bind_address=self._address,
            listen_port=self._ports[1],
            namesrv_addr=self.name_server,
            store_path_root_dir=self.store_path,
        )
        if self._path is None:
            options.mapped_file_size_commit_log = SMALL_LOG_FILE_BYTES
        if self._address == self._reachable:
            options.broker_ip1 = self._address
        return attrs.evolve(options, **self._broker_options)
