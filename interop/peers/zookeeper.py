"""Apache's ZooKeeper, one server or an ensemble of three, on free loopback ports with everything in one directory."""

from __future__ import annotations

import socket
from pathlib import Path

import attrs

from interop.peers.process import Process, free_port, wait_until
from interop.peers.toolchain import JAVA_OPTIONS, QUICK_START, ZOOKEEPER, jar_directory

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
TICK_MS = 500
"""Sessions last 2 to 20 ticks."""


@attrs.define(eq=False)
class ZooKeeperServer:
    """A ZooKeeper server. `quorum` has a line `server.N=...` for each member of an ensemble, itself among them."""

    directory: Path
    number: int = 1
    port: int = attrs.field(factory=free_port)
    quorum: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """More lines of its configuration."""
    properties: tuple[str, ...] = ()
    """Properties of its virtual machine."""
    _process: Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, on the data that it has, and wait until it takes connections."""
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(str(self.number))
        settings = {
            "tickTime": TICK_MS,
            "initLimit": 20,
            "syncLimit": 4,
            "dataDir": data,
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "srvr,ruok",
        }
        lines = [f"{key}={value}" for key, value in settings.items()]
        file = self.directory / "zoo.cfg"
        file.write_text("\n".join([*lines, *self.quorum, *self.extra, ""]))
        command = ["java", *QUICK_START, *JAVA_OPTIONS, "-Xmx96m", *self.properties]
        command += ["-cp", f"{jar_directory(ZOOKEEPER)}/*", MAIN_CLASS, str(file)]
        self._process = Process.start(command, self.directory / "zookeeper.log", self.directory)

    def wait_serving(self) -> None:
        """Return once it answers clients: with an ensemble, once that has a leader."""
        assert self._process is not None
        self._process.wait_listening(self.port)
        process = self._process
        wait_until(lambda: b"Mode:" in self.asked(b"srvr"), f"ZooKeeper serves\n{process.output_tail()}")

    def asked(self, word: bytes) -> bytes:
        """The answer to one of ZooKeeper's four-letter words; empty where it does not answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(word)
                return connection.makefile("rb").read()
        except OSError:
            return b""

    def signal(self, number: int) -> None:
        """To its process, where that runs."""
        assert self._process is not None
        self._process.child.send_signal(number)

    def kill(self) -> None:
        """SIGKILL; harmless where it does not run."""
        if self._process is not None:
            self._process.kill()


@attrs.define(eq=False)
class ZooKeeperEnsemble:
    """Three servers that elect their leader."""

    directory: Path
    servers: list[ZooKeeperServer] = attrs.field(factory=list)

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        ports = {number: (free_port(), free_port()) for number in (1, 2, 3)}
        quorum = tuple(f"server.{n}=127.0.0.1:{peers}:{election}" for n, (peers, election) in ports.items())
        for number in ports:
            server = ZooKeeperServer(self.directory / str(number), number, quorum=quorum)
            self.servers.append(server)
            server.start()
        self.wait_serving()

    def wait_serving(self) -> None:
        """Return once all answer clients."""
        for server in self.servers:
            server.wait_serving()

    def leader(self) -> ZooKeeperServer:
        """Return the leader, when there is one."""
        leaders: list[ZooKeeperServer] = []

        def leads() -> bool:
            leaders[:] = [server for server in self.servers if b"Mode: leader" in server.asked(b"srvr")]
            return bool(leaders)

        wait_until(leads, "a leader is elected")
        return leaders[0]

    def kill(self) -> None:
        for server in self.servers:
            server.kill()
