"""A name server and a broker, Apache's or this project's, on free loopback ports with everything in one directory."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import attrs

from interop.peers.process import Process, free_port, wait_until
from interop.peers.requirements import require_java
from interop.peers.toolchain import java_command

CLUSTER_NAME = "DefaultCluster"
BROKER_NAME = "broker-a"
MAX_MESSAGE_BYTES = 128 * 1024
QUERY_CONSUMER_OFFSET = 14
UPDATE_BROKER_CONFIG = 25
GET_ROUTEINFO_BY_TOPIC = 105
GET_BROKER_CLUSTER_INFO = 106

CommandLines = Callable[[Path, Path, Path], tuple[list[str], list[str]]]


def apache_commands(home: Path, name_server_file: Path, broker_file: Path) -> tuple[list[str], list[str]]:
    """Command lines of Apache's name server and broker."""
    return (
        java_command(home, "256m", "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", str(name_server_file)),
        java_command(home, "512m", "org.apache.rocketmq.broker.BrokerStartup", "-c", str(broker_file)),
    )


def our_commands(home: Path, name_server_file: Path, broker_file: Path) -> tuple[list[str], list[str]]:
    """Command lines of this project's name server and broker, run by the interpreter's own twistd."""
    twistd = [str(Path(sys.executable).parent / "twistd"), "--nodaemon", "--pidfile="]
    return (
        [*twistd, "mqnamesrv", "--config", str(name_server_file)],
        [*twistd, "mqbroker", "--config", str(broker_file)],
    )


COMMANDS: dict[str, CommandLines] = {"apache": apache_commands, "ours": our_commands}


@attrs.define(eq=False)
class Cluster:
    """Runs one name server and one broker. `kind` is a key of COMMANDS; both kinds read the same two files."""

    kind: str
    directory: Path
    name_server_port: int = attrs.field(factory=free_port)
    broker_port: int = attrs.field(factory=free_port)
    settings: Mapping[str, object] = attrs.field(factory=dict)
    """More of the broker's."""
    started: str = "boot success"
    """Text that Apache's broker prints after its start."""
    _name_server: Process | None = None
    _broker: Process | None = None

    @property
    def name_server(self) -> str:
        return f"127.0.0.1:{self.name_server_port}"

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.broker_port}"

    @property
    def broker_process(self) -> Process:
        """The broker that runs."""
        assert self._broker is not None
        return self._broker

    @property
    def store(self) -> Path:
        return self.directory / "store"

    def start(self) -> None:
        (self.directory / "home").mkdir(parents=True)
        self._file("namesrv.conf", {"listenPort": self.name_server_port, "bindAddress": "127.0.0.1"})
        self._file("broker.conf", {**self._broker_settings(), **self.settings})
        self._name_server = self._launch(0, "namesrv", self.name_server_port)
        self.start_broker()

    def start_broker(self) -> None:
        """Start the broker on the store it has, and wait until the name server knows it."""
        self._broker = self._launch(1, "broker", self.broker_port)
        if self.kind == "apache":
            broker = self._broker
            wait_until(lambda: self.started in broker.output(), "Apache's broker has started")
        self.wait_registered()

    def wait_registered(self) -> None:
        """Return once the name server knows the broker.

        Apache's broker skips its first registration when its scan of name servers is not done, and on a busy machine
        it may close its connection to the name server, which forgets it; it registers again up to 30 s later. Setting
        the permission that it has makes it register now.
        """
        if self.kind == "apache" and not self._registered():
            ask(self.broker_port, UPDATE_BROKER_CONFIG, body=b"brokerPermission=6")
        assert self._broker is not None
        wait_until(self._registered, f"{self.kind} broker registers\n{self._broker.output_tail()}")

    def stop_broker(self) -> int:
        """Stop by SIGTERM; the exit status."""
        assert self._broker is not None
        return self._broker.stop()

    def kill_broker(self) -> None:
        assert self._broker is not None
        self._broker.kill()

    def wait_route(self, topic: str) -> None:
        """Return once clients can find the topic: brokers register a new one a moment after they answered."""
        broker = BROKER_NAME.encode()
        wait_until(
            lambda: broker in ask(self.name_server_port, GET_ROUTEINFO_BY_TOPIC, {"topic": topic}),
            f"route of {topic} at the {self.kind} name server",
        )

    def stop(self) -> None:
        """End both processes, without the ten seconds of a shutdown of Apache's broker."""
        for process in (self._broker, self._name_server):
            if process is not None:
                process.kill() if self.kind == "apache" else process.stop()

    def _broker_settings(self) -> dict[str, object]:
        return {
            "brokerClusterName": CLUSTER_NAME,
            "brokerName": BROKER_NAME,
            "brokerId": 0,
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "bindAddress": "127.0.0.1",
            "listenPort": self.broker_port,
            "haListenPort": self.broker_port + 1,
            "namesrvAddr": self.name_server,
            "brokerRole": "ASYNC_MASTER",
            "flushDiskType": "ASYNC_FLUSH",
            "autoCreateTopicEnable": "true",
            "reviveQueueNum": 1,  # Apache's shutdown joins one idle thread after the other
            "reviveInterval": 100,
            "maxMessageSize": MAX_MESSAGE_BYTES,
            "mappedFileSizeCommitLog": 64 * 1024 * 1024,
            "recallMessageEnable": "true",
            "enablePropertyFilter": "true",
            "transactionTimeOut": 1000,
            "transactionCheckInterval": 500,
            "transactionCheckMax": 4,
            "transactionOpBatchInterval": 100,  # Apache asks about what is decided but not written yet
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
        }

    def _file(self, name: str, settings: dict[str, object]) -> None:
        (self.directory / name).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _launch(self, which: int, name: str, port: int) -> Process:
        files = (self.directory / "namesrv.conf", self.directory / "broker.conf")
        command = COMMANDS[self.kind](self.directory / "home", *files)[which]
        environment = os.environ | {"HOME": str(self.directory / "home")}
        process = Process.start(command, self.directory / f"{name}.log", self.directory, env=environment)
        process.wait_listening(port)
        return process

    def _registered(self) -> bool:
        return self.broker.encode() in ask(self.name_server_port, GET_BROKER_CLUSTER_INFO)


Servers = TypeVar("Servers", bound=Cluster)


@contextmanager
def running(servers: Servers) -> Iterator[Servers]:
    """Start the servers, and stop them at the end. Apache's need Java: without it the test skips, or fails with CI=true."""
    if servers.kind == "apache":
        require_java()
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


def ask(port: int, code: int, fields: dict[str, str] | None = None, body: bytes = b"", *, seconds: float = 5) -> bytes:
    """Everything after the length field of a loopback server's answer to one request, which comes within `seconds`."""
    request = {"code": code, "opaque": 1, "language": "JAVA", "version": 479, "flag": 0, "extFields": fields or {}}
    header = json.dumps(request).encode()
    with socket.create_connection(("127.0.0.1", port), seconds) as connection:
        connection.sendall(struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body)
        stream = connection.makefile("rb")
        (length,) = struct.unpack(">I", stream.read(4))
        return stream.read(length)


def answer_fields(port: int, code: int, **fields: str) -> dict[str, str]:
    """The header fields of a loopback server's answer, none where it refuses."""
    answer = ask(port, code, fields)
    (mark,) = struct.unpack_from(">I", answer)
    return json.loads(answer[4 : 4 + (mark & 0xFFFFFF)]).get("extFields") or {}


def consumer_offset(port: int, group: str, topic: str, queue_id: int) -> int:
    """Return the committed offset of a group in a queue; -1 without one.

    Clients send their last commit in a one-way request at their stop: a read directly after it may come before it.
    """
    fields = answer_fields(port, QUERY_CONSUMER_OFFSET, consumerGroup=group, topic=topic, queueId=str(queue_id))
    return int(fields.get("offset", -1))
