"""Implements `mq up --brokers`: a name server in this process, and each broker in a process of its own."""

from __future__ import annotations

import os

from twisted.internet import defer
from twisted.internet.interfaces import IReactorTime

from twisted_mq.broker.processes.child import Child
from twisted_mq.broker.processes.supervisor import Supervisor, spawner, words_of_children
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import NamesrvService
from twisted_mq.reactor_threads import threads_of
from twisted_mq.testing.cluster import LOOPBACK, SMALL_LOG_FILE_BYTES
from twisted_mq.testing.temporary_folder import TemporaryFolder

NAME = "broker"


class BrokersOfUp:
    """A name server, and `count` brokers in child processes. Without `store_path` the stores are in a temporary folder."""

    def __init__(
        self,
        reactor: IReactorTime,
        count: int,
        store_path: str | None,
        *,
        address: str,
        namesrv_port: int,
        broker_port: int,
        grpc_port: int,
        advertise: str | None,
    ) -> None:
        self._reactor = reactor
        self._count = count
        self._address = address
        self._path = store_path
        self._temporary = TemporaryFolder("mq-store-")
        self._words = [
            *("--port", str(broker_port), "--bind", address, "--store", self.store_path, "--name", NAME),
            *("--set", f"grpcServerPort={grpc_port}"),
        ]
        ip = advertise or (address if address == self._reachable else None)
        if ip is not None:
            self._words += ["--set", f"brokerIP1={ip}"]
        if store_path is None:
            self._words += ["--set", f"mappedFileSizeCommitLog={SMALL_LOG_FILE_BYTES}"]
        options = NamesrvOptions(
            bind_address=address,
            listen_port=namesrv_port,
            kv_config_path=os.path.join(self.store_path, "namesrv", "kvConfig.json"),
            config_store_path=os.path.join(self.store_path, "namesrv", "namesrv.properties"),
        )
        self.namesrv = NamesrvService(options, reactor)
        self._supervisor: Supervisor | None = None

    @property
    def store_path(self) -> str:
        """Return the directory of all stores; a temporary one is created at the first call."""
        return self._temporary.path if self._path is None else self._path

    @property
    def name_server(self) -> str:
        """Return the name server's address."""
        return f"{self._reachable}:{self.namesrv.port}"

    @property
    def _reachable(self) -> str:
        return LOOPBACK if self._address in ("0.0.0.0", "::") else self._address

    @property
    def _children(self) -> list[Child]:
        return [] if self._supervisor is None else self._supervisor.children

    def addresses(self, port: str = "port") -> dict[str, str]:
        """Return the address of each broker by its name; of those that have such a port ("port" or "grpc")."""
        return {one.name: f"{self._reachable}:{one.ports[port]}" for one in self._children if one.ports.get(port)}

    async def start(self) -> None:
        """Start all; the brokers are registered when this returns. Raises BrokerEnded, PortError after all was stopped."""
        try:
            self.namesrv.startService()
            words = [*self._words, "--namesrv", self.name_server]
            spawn = spawner(self._reactor, words_of_children(words))
            self._supervisor = Supervisor(NAME, self._count, spawn, self._reactor)
            ready = self._supervisor.ready
            self._supervisor.startService()
            await ready
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the brokers, then the name server, and remove temporary stores."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            await supervisor.stopService()
        if self.namesrv.running:
            await defer.maybeDeferred(self.namesrv.stopService)
        if self._temporary.is_made:
            await threads_of(self._reactor)(self._temporary.remove)

    def facts(self) -> dict[str, object]:
        """Return the addresses for `--json`."""
        return {
            "namesrv": self.name_server,
            "brokers": self.addresses(),
            "grpc": self.addresses("grpc"),
            "store_path": self.store_path,
        }

    def welcome(self, namesrv_flag: str) -> str:
        """Return the text with the addresses, and what to do with them."""
        grpc = ", ".join(self.addresses("grpc").values()) or "not served"
        kept = " (removed at the end)" if self._path is None else ""
        return "\n".join(
            [
                f"name server  {self.name_server}",
                *(f"{name:<13}{address}" for name, address in self.addresses().items()),
                f"gRPC         {grpc}, for clients of 5.x",
                f"stores       {self.store_path}{kept}",
                f'try          mq send Orders "hello"{namesrv_flag}',
                "Ctrl-C stops all",
            ]
        )
