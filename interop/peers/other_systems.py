"""Kafka's broker and RabbitMQ's server, each one process on loopback with everything in one directory, for `mq replay`.

Kafka's jars come from Maven; RabbitMQ and Erlang are Debian's packages, unpacked into the cache: no service is installed. Clients
for Python, which users install themselves, are in the cache too.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import attrs

from interop.peers.process import Process, free_port, wait_until
from interop.peers.requirements import java_problem
from interop.peers.toolchain import JAVA_OPTIONS, KAFKA, QUICK_START, cache_directory, jar_directory, made_once

CLIENTS = ("kafka-python==3.0.12", "pika==1.4.4", "thrift==0.25.0", "hdfs-native==0.14.7")
"""With thrift pyiceberg reaches a metastore of Hive."""
PROGRAM = Path(__file__).with_name("other_systems_program.py")
RABBIT, ERLANG = "rabbitmq-server", re.compile(r"^ [ |]Depends: (erlang-[a-z0-9-]+)$", re.MULTILINE)
UNPACKED = "debian-rabbitmq"
"""The directory of the cache with Debian's packages."""
STARTER = """#!/bin/sh
ROOTDIR={root} BINDIR={runtime} EMU=beam PROGNAME=erl
export ROOTDIR BINDIR EMU PROGNAME
exec "$BINDIR/erlexec" "$@"
"""
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def clients() -> Path:
    """Return the directory of the Python clients. Raises CalledProcessError."""

    def make(place: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        _run(*pip, "--target", str(place), *CLIENTS)

    return made_once("-".join(["replay", *CLIENTS]).replace("==", "-"), make)


def has_debian_packages() -> bool:
    return (cache_directory() / UNPACKED).is_dir()


def debian_packages() -> Path:
    """Return the directory with RabbitMQ and Erlang, as Debian's packages have them. Raises CalledProcessError, OSError."""

    def make(place: Path) -> None:
        place.mkdir()
        _run("apt-get", "download", "-qq", *_needed(), cwd=place)
        for package in sorted(place.glob("*.deb")):
            _run("dpkg", "-x", str(package), str(place))
            package.unlink()

    return made_once(UNPACKED, make)


def _needed() -> list[str]:
    """Return RabbitMQ's package, and those of Erlang that it depends on, directly or not."""
    done: set[str] = set()
    left = {RABBIT}
    while left:
        name = left.pop()
        done.add(name)
        left |= set(ERLANG.findall(_run("apt-cache", "depends", name))) - done
    return sorted(done)


def _run(*command: str, cwd: Path | None = None) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout


def clients_problem() -> str | None:
    """Return why the Python clients cannot be used here, None if they can. Fetches what is missing."""
    return _problem("Python's clients of other systems are", clients)


def kafka_problem() -> str | None:
    """Return why Kafka cannot run here, None if it can. Fetches what is missing."""
    return java_problem() or clients_problem()


def rabbit_problem() -> str | None:
    """Return why RabbitMQ cannot run here, None if it can. Fetches what is missing."""
    if shutil.which("apt-get") is None:
        return "RabbitMQ is not available: its packages are Debian's, and there is no apt-get"
    return clients_problem() or _problem("RabbitMQ is", debian_packages)


def _problem(what: str, fetch: object) -> str | None:
    try:
        fetch()  # type: ignore[operator]
    except (subprocess.CalledProcessError, OSError) as failure:
        said = str(getattr(failure, "stderr", None) or failure).strip()
        return f"{what} not available: {said[-400:]}"
    return None


def environment() -> dict[str, str]:
    """Return the environment of programs that use the Python clients."""
    path = os.pathsep.join(filter(None, (str(clients()), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def program(*words: str) -> str:
    """Run the program that fills and reads the systems; what it prints. Raises CalledProcessError."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words], env=environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@attrs.define(eq=False)
class Kafka:
    """A broker that is its own controller."""

    directory: Path
    port: int = attrs.field(factory=free_port)
    controller_port: int = attrs.field(factory=free_port)
    _process: Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.directory.mkdir(parents=True)
        listeners = f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self.directory / "data",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
        }
        file = self.directory / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        _run(*self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file)), cwd=self.directory)
        self._process = Process.start(
            self._java("kafka.Kafka", str(file)), self.directory / "kafka.log", self.directory
        )
        self._process.wait_listening(self.port)

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        options = [*QUICK_START, *JAVA_OPTIONS, "-Xmx256m", f"-Dkafka.logs.dir={self.directory}"]
        return ["java", *options, "-cp", f"{jar_directory(KAFKA)}/*", main_class, *arguments]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()


@attrs.define(eq=False)
class Rabbit:
    """A node without plugins, and the port mapper that Erlang wants beside it."""

    directory: Path
    port: int = attrs.field(factory=free_port)
    mapper_port: int = attrs.field(factory=free_port)
    distribution_port: int = attrs.field(factory=free_port)
    _processes: list[Process] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def start(self) -> None:
        self.directory.mkdir(parents=True)
        root = debian_packages() / "usr/lib"
        erlang = root / "erlang"
        (version,) = (root / "rabbitmq/lib").glob("rabbitmq_server-*")
        (runtime,) = erlang.glob("erts-*/bin")
        here = str(self.directory)
        starter = self.directory / "bin" / "erl"  # Debian's own knows one place alone
        starter.parent.mkdir()
        starter.write_text(STARTER.format(root=erlang, runtime=runtime))
        starter.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{starter.parent}:{os.environ['PATH']}",
            "HOME": here,
            "ERL_EPMD_PORT": str(self.mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "replay@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_MNESIA_BASE": here,
            "RABBITMQ_LOG_BASE": here,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": f"{here}/none",
            "RABBITMQ_CONF_ENV_FILE": f"{here}/none",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{here}/plugins",
            "RABBITMQ_PID_FILE": f"{here}/pid",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self._start(
            [str(runtime / "epmd"), "-port", str(self.mapper_port), "-address", "127.0.0.1"], "epmd.log", environment
        )
        self._start([str(version / "sbin/rabbitmq-server")], "rabbitmq.log", environment)
        self._processes[-1].wait_listening(self.port)
        wait_until(self._answers, lambda: f"RabbitMQ answers\n{self._processes[-1].output_tail()}")

    def _start(self, command: list[str], log: str, environment: dict[str, str]) -> None:
        self._processes.append(
            Process.start(command, self.directory / log, self.directory, env=environment, start_new_session=True)
        )

    def _answers(self) -> bool:
        """Return True once it answers the head of a connection."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return bool(connection.recv(1))

    def stop(self) -> None:
        """SIGKILL to each with its children."""
        for process in reversed(self._processes):
            if process.child.poll() is None:
                os.killpg(process.child.pid, 9)
                process.child.wait()
