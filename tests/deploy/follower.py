"""Follower of docs/how-to/deploy.md, line by line, without root, systemd and Docker."""

from __future__ import annotations

import configparser
import importlib.metadata
import itertools
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import yaml

from interop.peers.process import Process, wait_until
from tests.deploy.containers import Container
from tests.deploy.ground import DEPLOY, ROOT, Ground, new_ports
from tests.docs.blocks import blocks

PAGE = ROOT / "docs" / "how-to" / "deploy.md"
MARK = "not run: tests/deploy runs it with processes"
MACHINE = "192.0.2.7"
"""Address of this machine on the page."""
BROKERS = (10911, 10921, 10931, 10941)
PORTS = {
    "9876",
    "8090",
    *(str(port) for port in range(5556, 5564)),
    *(str(one + beside) for one in BROKERS for beside in (0, 1)),
}
ENDED = {0, -15}


def lines_of(title: str) -> list[str]:
    """The commands below a heading."""
    source = PAGE.read_text()
    begin = source.index(f"## {title}\n")
    end = source.find("\n## ", begin)
    first, last = source.count("\n", 0, begin), source.count("\n", 0, end if end > 0 else len(source))
    found = [block for block in blocks(PAGE) if block.mark == MARK and first < block.line <= last]
    return [line for block in found for line in block.text.splitlines()]


@attrs.define
class Follower:
    """`printed` has what the last commands printed."""

    folder: Path
    ports: dict[str, str] = attrs.field(init=False)
    ground: Ground = attrs.field(init=False)
    users: set[str] = attrs.field(factory=set)
    services: dict[str, Process] = attrs.field(factory=dict)
    containers: dict[str, Container] = attrs.field(factory=dict)
    images: set[str] = attrs.field(factory=set)
    networks: set[str] = attrs.field(factory=set)
    printed: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.ports = new_ports(PORTS, {})
        self.ground = Ground.new(self.folder, self.ports, {MACHINE: "127.0.0.1"})
        self.ground.copy_of_deploy()

    def follow(self, title: str) -> None:
        """Do all commands below a heading. Raises CalledProcessError, AssertionError."""
        for line in lines_of(title):
            self.do(line)

    def do(self, line: str) -> None:
        words = shlex.split(line)
        leading = itertools.takewhile(lambda word: re.match(r"[A-Z_]+=", word), words)
        variables = dict(word.split("=", 1) for word in leading)
        words = words[len(variables) :]
        name = Path(words[0]).name
        known: dict[str, Callable[[list[str]], None]] = {
            "useradd": lambda words: self.users.add(words[-1]),
            "python3": self._python,
            "pip": self._pip,
            "install": self._install,
            "systemctl": self._systemctl,
            "journalctl": self._journalctl,
            "docker": lambda words: self._docker(words, variables),
        }
        if name in known:
            known[name](words[1:])
        else:
            self._run(words)

    def _run(self, words: list[str]) -> None:
        command = [self.ground.text(word) for word in words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.ground.environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
        self.printed[shlex.join(words)] = done.stdout

    def leave(self) -> list[int]:
        """Stop everything that runs; the exit codes."""
        running = [*self.services.values(), *(one.process for one in self.containers.values() if one.process)]
        return [process.stop(60) for process in reversed(running)]

    # a machine

    def _python(self, words: list[str]) -> None:
        assert words == ["-m", "venv", "/opt/rocketmq/venv"]
        self.ground.make_venv()

    def _pip(self, words: list[str]) -> None:
        assert words[0] == "install"
        name, extras = re.fullmatch(r"([\w-]+)\[([\w,]+)\]", words[1]).groups()  # type: ignore[union-attr]
        known = importlib.metadata.metadata(name).get_all("Provides-Extra") or []
        assert set(extras.split(",")) <= set(known)

    def _install(self, words: list[str]) -> None:
        owners = [word for word in words if word.startswith("--owner=")]
        assert {one.removeprefix("--owner=") for one in owners} <= self.users
        self._run(["install", *(word for word in words if word not in owners)])

    def _unit(self, name: str) -> configparser.SectionProxy:
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        assert unit.read(self.ground.path(f"/etc/systemd/system/{name}.service"))
        return unit["Service"]

    def _systemctl(self, words: list[str]) -> None:
        if words == ["daemon-reload"]:
            return
        assert words[:2] == ["enable", "--now"]
        for name in words[2:]:
            unit = self._unit(name)
            assert unit["User"] in self.users
            state = self.ground.path(f"/var/lib/{unit['StateDirectory']}")
            state.mkdir(exist_ok=True)
            assert unit["WorkingDirectory"] == str(state)
            command, log = shlex.split(unit["ExecStart"]), self.folder / f"{name}.log"
            self.services[name] = Process.start(command, log, state, env=self.ground.environment)

    def _journalctl(self, words: list[str]) -> None:
        name = words[words.index("--unit") + 1]
        wait_until(lambda: self.services[name].output(), f"{name} says something")
        self.printed[f"journalctl {name}"] = self.services[name].output()

    # containers

    def _docker(self, words: list[str], variables: dict[str, str]) -> None:
        {
            "build": self._build,
            "network": lambda words: self.networks.add(words[-1]),
            "run": self._docker_run,
            "exec": lambda words: self._exec(words[0], words[1:]),
            "stop": self._stop,
            "compose": lambda words: self._compose(words, variables),
        }[words[0]](words[1:])

    def _build(self, words: list[str]) -> None:
        options = dict(zip(words[:-1:2], words[1:-1:2], strict=True))
        assert (ROOT / words[-1] / options["--file"]).is_file()
        self.images.add(options["--tag"])

    def _container(
        self, name: str, published: set[str], command: list[str], variables: dict[str, str], hosts: dict[str, str]
    ) -> None:
        """Ports that are not published are those of the container alone."""
        shared = {port: self.ports[port] for port in published}
        ports = new_ports(PORTS, shared) | {"9876": self.ports["9876"]}
        ground = Ground.new(self.folder / name, ports, {MACHINE: "127.0.0.1", **hosts})
        self.containers[name] = Container.of_image(name, ground, command, variables)
        self.containers[name].start()

    def _docker_run(self, words: list[str]) -> None:
        options: dict[str, list[str]] = {}
        assert words[0] == "--detach"
        rest = words[1:]
        while rest[0].startswith("--"):
            options.setdefault(rest[0], []).append(rest[1])
            rest = rest[2:]
        image, *command = rest
        assert image in self.images
        assert set(options["--network"]) <= self.networks
        published = {
            inside for inside, outside in (one.split(":") for one in options.get("--publish", [])) if inside == outside
        }
        variables = dict(one.split("=", 1) for one in options.get("--env", []))
        hosts = {f"{name}:9876": f"127.0.0.1:{self.ports['9876']}" for name in self.containers}
        (name,) = options["--name"]
        self._container(name, published, command, variables, hosts)
        wait_until(self.containers[name].is_healthy, f"{name} is healthy")

    def _exec(self, name: str, command: list[str]) -> None:
        self.printed[shlex.join(command)] = self.containers[name].run(command)

    def _stop(self, names: list[str]) -> None:
        for name in names:
            assert self.containers[name].stop() in ENDED, self.containers[name].log.read_text()

    def _compose(self, words: list[str], variables: dict[str, str]) -> None:
        assert words[:2] == ["--file", "deploy/compose.yaml"]
        action, *rest = words[2:]
        if action == "up":
            self._up(interpolated((DEPLOY / "compose.yaml").read_text(), variables))
        elif action == "exec":
            self._exec(rest[0], rest[1:])
        elif action == "logs":
            self.printed[f"logs {rest[0]}"] = self.containers[rest[0]].log.read_text()
        else:
            assert action == "stop"
            self._stop([name for name in self.containers if name != "namesrv"] + ["namesrv"])

    def _up(self, text: str) -> None:
        """Start the services in the order of what they depend on, and wait until all are healthy."""
        services = yaml.safe_load(text)["services"]
        hosts = {f"{name}:9876": f"127.0.0.1:{self.ports['9876']}" for name in services}
        for name in sorted(services, key=lambda name: len(services[name].get("depends_on", {}))):
            service = services[name]
            assert service["image"] in self.images
            for other in service.get("depends_on", {}):
                wait_until(self.containers[other].is_healthy, f"{other} is healthy")
            published = {str(one).split(":")[-1] for one in service.get("ports", [])}
            self._container(name, published, service["command"], service.get("environment", {}), hosts)
        for name, service in services.items():
            if not service.get("healthcheck", {}).get("disable"):
                wait_until(self.containers[name].is_healthy, f"{name} is healthy")


def interpolated(text: str, variables: dict[str, str]) -> str:
    """Variables as ${NAME:?why} replaced. Raises KeyError without one."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: variables[found[1]], text)


def all_blocks() -> Iterator[str]:
    """Every command of the page."""
    yield from (line for block in blocks(PAGE) if block.mark == MARK for line in block.text.splitlines())
