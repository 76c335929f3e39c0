"""Servers that gRPC clients are led to: a proxy inside the broker (local mode) or before it (cluster mode), of either kind."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from interop.peers.process import PeerFailed, Process, free_port
from interop.peers.servers import CLUSTER_NAME, Cluster
from interop.peers.toolchain import PROXY, java_command

APACHE_PROXY = "org.apache.rocketmq.proxy.ProxyStartup"

ProxyCommand = Callable[[Path, Path], list[str]]
"""Home, rmq-proxy.json -> command line of a proxy in cluster mode."""


def our_proxy(home: Path, file: Path) -> list[str]:
    twistd = str(Path(sys.executable).parent / "twistd")
    return [twistd, "--nodaemon", "--pidfile=", "mqproxy", "--config", str(file), "--bind", "127.0.0.1"]


def apache_proxy(home: Path, file: Path) -> list[str]:
    return java_command(home, "512m", APACHE_PROXY, "-pm", "CLUSTER", "-pc", str(file), jars=PROXY)


@attrs.define(eq=False)
class GrpcServers(Cluster):
    """A name server and a broker with a gRPC port: the broker's own, or that of a proxy before it."""

    proxy: ProxyCommand | None = None
    """None where the broker has the port: local mode."""
    serves_both: bool = False
    """Our broker has a port of its own beside that of the proxy."""
    proxy_settings: Mapping[str, object] = attrs.field(factory=dict)
    """More of the proxy's."""
    grpc_port: int = attrs.field(factory=free_port)
    broker_grpc_port: int = attrs.field(factory=free_port)
    _proxy: Process | None = attrs.field(init=False, default=None)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def broker_address(self) -> str:
        """The broker's own gRPC port."""
        return f"127.0.0.1:{self.broker_grpc_port if self.serves_both else self.grpc_port}"

    @property
    def broker_process(self) -> Process:
        assert self._broker is not None
        return self._broker

    @property
    def served_by(self) -> Process:
        """The process that has the gRPC port."""
        return self._proxy or self.broker_process

    def start(self) -> None:
        super().start()
        if self.proxy is not None:
            self._proxy = self._start_proxy(self.proxy)

    def stop(self) -> None:
        if self._proxy is not None:
            self._proxy.kill()
        super().stop()

    def _start_proxy(self, command: ProxyCommand) -> Process:
        """Apache's ends where its first call of the name server takes over 3 s: it gets a second chance."""
        line = command(self.directory / "home", self._proxy_file("CLUSTER"))
        try:
            return self._run(line, "proxy", self.grpc_port)
        except PeerFailed:
            return self._run(line, "proxy", self.grpc_port)

    def _launch(self, which: int, name: str, port: int) -> Process:
        if self.kind == "apache" and self.proxy is None and name == "broker":
            files = ("-pc", str(self._proxy_file("LOCAL")), "-bc", str(self.directory / "broker.conf"))
            line = java_command(self.directory / "home", "512m", APACHE_PROXY, "-pm", "LOCAL", *files, jars=PROXY)
            return self._run(line, name, self.grpc_port)
        return super()._launch(which, name, port)

    def _run(self, line: list[str], name: str, port: int) -> Process:
        home = str(self.directory / "home")
        environment = os.environ | {"HOME": home, "RMQ_PROXY_HOME": home}
        process = Process.start(line, self.directory / f"{name}.log", self.directory, env=environment)
        process.wait_listening(port)
        return process

    def _proxy_file(self, mode: str) -> Path:
        """Settings that both kinds of proxy read."""
        file = self.directory / "rmq-proxy.json"
        settings = {
            "rocketMQClusterName": CLUSTER_NAME,
            "proxyClusterName": CLUSTER_NAME,
            "proxyMode": mode,
            "namesrvAddr": self.name_server,
            "grpcServerPort": self.grpc_port,
            "remotingListenPort": free_port(),
            "localServeAddr": "127.0.0.1",
            **self.proxy_settings,
        }
        file.write_text(json.dumps(settings))
        return file

    def _broker_settings(self) -> dict[str, object]:
        port = self.grpc_port if self.proxy is None else self.broker_grpc_port
        serves = self.kind == "ours" and (self.proxy is None or self.serves_both)
        local = {"grpcServerPort": port} if serves else {}
        patient = {
            "transactionTimeOut": 5000,  # a check that overtakes the client's own commit takes the transaction's place away
            "waitTimeMillsInSendQueue": 5000,  # all clients start at once
            "transactionCheckMax": 100,  # Apache's proxy in cluster mode registers producers up to 20 s late
        }
        return {**super()._broker_settings(), **patient, **local}


PLACES: dict[str, tuple[str, ProxyCommand | None]] = {
    "ours local": ("ours", None),
    "ours before ours": ("ours", our_proxy),
    "ours before Apache's": ("apache", our_proxy),
    "Apache's before ours": ("ours", apache_proxy),
    "Apache's local": ("apache", None),
}
"""Project of the proxy and project of the servers -> kind of the broker, and the proxy."""


def servers_at(place: str, directory: Path) -> GrpcServers:
    """The servers of PLACES, not started."""
    kind, proxy = PLACES[place]
    return GrpcServers(kind, directory, proxy=proxy, started="boot success" if proxy else "startup successfully")
