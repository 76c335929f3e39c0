"""The gRPC clients: how each is installed, how its program is started, what it can't do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import attrs

from interop.peers.line_peer import LinePeer
from interop.peers.requirements import require_java, unavailable
from interop.peers.toolchain import (
    GRPC_VERSIONS,
    compile_java,
    digest,
    jar_directory,
    java_command,
    made_once,
)

HERE = Path(__file__).resolve().parent
PYTHON_PACKAGE = "rocketmq-python-client==5.1.2"
TOOLS = {"go": "golang-go", "node": "nodejs", "npm": "npm"}
"""Command -> Debian's package. Debian's Go may be too old for the client: its go.mod says which it needs."""


@attrs.frozen
class Client:
    """A client of Apache. `command` runs its program at an address, with logs in a directory."""

    name: str
    install: Callable[[], object]
    """Brings it here, quick where it is. Raises CalledProcessError, OSError."""
    command: Callable[[str, str, Path], list[str]]
    """Address, "tls" or "plain", home -> command line."""
    security: str = "plain"
    lacks: frozenset[str] = frozenset()
    """Scenarios that its API has no calls for."""
    keeps_order_after_failure: bool = True
    """True if a FIFO consumer retries a refused message before the next ones of its message group."""
    most_attempts_in_order: int = 17
    """Number of attempts of a FIFO consumer for a message."""
    environment: Callable[[Path], dict[str, str]] = lambda home: {"HOME": str(home)}

    def start(self, address: str, directory: Path) -> LinePeer:
        """Run the program. The test skips, or fails with CI=true, where the client can't be installed."""
        self.require()
        home = directory / self.name
        home.mkdir()
        return LinePeer(
            self.command(address, self.security, home), home, self.name, {**os.environ, **self.environment(home)}
        )

    def require(self) -> None:
        problem = self.problem()
        if problem is not None:
            unavailable(problem)

    def problem(self) -> str | None:
        """Install the client. Returns why it can't run here, None when it can."""
        try:
            self.install()
        except (subprocess.CalledProcessError, OSError) as failure:
            said = str(getattr(failure, "stderr", None) or failure).strip()
            return f"Apache's gRPC client {self.name} is not available: {said[-400:]}"
        return None


def _run(*command: str | Path, **options: object) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, **options)  # type: ignore[call-overload]


def python_environment() -> Path:
    """The Python client's own: the C++ client's package is `rocketmq`, too."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}-{PYTHON_PACKAGE.partition('==')[2]}"

    def make(place: Path) -> None:
        venv.create(place, with_pip=True)
        _run(place / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON_PACKAGE)

    return made_once(f"grpc-python-{version}", make)


def _python_command(address: str, security: str, home: Path) -> list[str]:
    return [str(python_environment() / "bin/python"), str(HERE / "python_program.py"), address, security]


NODE = HERE / "node"


def node_modules() -> Path:
    """Return the directory of the packages of package-lock.json."""

    def make(place: Path) -> None:
        place.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(NODE / name, place)
        _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=place)

    return made_once(f"grpc-node-{digest([NODE / 'package-lock.json'])}", make) / "node_modules"


def _node_command(address: str, security: str, home: Path) -> list[str]:
    return ["node", str(NODE / "peer.js"), address, security]


def _node_environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "NODE_PATH": str(node_modules())}


GO = HERE / "go"


def go_program() -> Path:
    """The compiled program."""
    sources = [GO / name for name in ("main.go", "go.mod", "go.sum")]

    def make(place: Path) -> None:
        _run("go", "build", "-trimpath", "-buildvcs=false", "-o", place / "peer", ".", cwd=GO)

    return made_once(f"grpc-go-{digest(sources)}", make) / "peer"


def _go_command(address: str, security: str, home: Path) -> list[str]:
    return [str(go_program()), address, security]


def _go_environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "rocketmq.client.logRoot": str(home)}


JAVA = HERE / "java" / "GrpcPeer.java"


def _json_jar() -> Path:
    """Return the JSON library of the Java program, from the jars of Apache's servers."""
    return next(jar_directory().glob("fastjson-*.jar"))


def java_classes() -> Path:
    """The compiled program, for all versions of the client."""
    require_java()
    classpath = f"{jar_directory(f'grpc-java-{GRPC_VERSIONS[-1]}')}/*:{_json_jar()}"
    return made_once(f"grpc-java-{digest([JAVA])}", lambda place: compile_java(classpath, [JAVA], place))


def _java(version: str, security: str, *lacks: str) -> Client:
    jars = f"grpc-java-{version}"

    def command(address: str, security: str, home: Path) -> list[str]:
        line = java_command(home, "128m", "GrpcPeer", address, security, classes=java_classes(), jars=jars)
        line[line.index("-cp") + 1] += f":{_json_jar()}"
        return line

    return Client(jars.removeprefix("grpc-"), java_classes, command, security, frozenset(lacks))


CLIENTS = {
    one.name: one
    for one in (
        _java("5.2.0", "tls"),
        _java("5.0.7", "plain", "recall"),
        # goes on with the next messages while the refused one waits
        Client("go-5.1.3", go_program, _go_command, "tls", frozenset({"recall"}), False, environment=_go_environment),
        # knows no customized backoff, the servers' default: forwards a message that failed once to the dead letters
        Client("node-1.0.8", node_modules, _node_command, "plain", frozenset(), False, 1, _node_environment),
        Client("python-5.1.2", python_environment, _python_command),
    )
}
"""Clients by name. The Go and Java clients use TLS by default."""
