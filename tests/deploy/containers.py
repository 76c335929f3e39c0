"""Containers of the image of deploy/Dockerfile, as processes: each has a ground of its own and starts as the image does."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from interop.peers.process import Process
from tests.deploy.ground import DEPLOY, Ground

ENTRYPOINT = ("/bin/sh", "/opt/rocketmq/start.sh")
METRICS = "5557"


def health_check() -> list[str]:
    """The command of HEALTHCHECK."""
    (found,) = re.findall(r"^HEALTHCHECK .*\\\n  CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    return list(json.loads(found))


@attrs.define
class Container:
    """A container. Its volume outlives its processes."""

    name: str
    ground: Ground
    command: Sequence[str]
    variables: Mapping[str, str] = attrs.field(factory=dict)
    process: Process | None = None

    @classmethod
    def of_image(
        cls, name: str, ground: Ground, command: Sequence[str], variables: Mapping[str, str] | None = None
    ) -> Container:
        """Create the contents of the image: the venv, start.sh, and the configurations."""
        ground.make_venv()
        ground.put(DEPLOY / "start.sh", "/opt/rocketmq/start.sh")
        for file in ("namesrv.conf", "broker.conf"):
            ground.put(DEPLOY / "image" / file, f"/etc/rocketmq/{file}")
        return cls(name, ground, command, variables or {})

    @property
    def environment(self) -> dict[str, str]:
        return {**self.ground.environment, **{name: self.ground.text(value) for name, value in self.variables.items()}}

    @property
    def log(self) -> Path:
        return self.ground.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start its command; one that has /bin/sh itself has no entry point."""
        words = self.command if self.command[0] == "/bin/sh" else [*ENTRYPOINT, *self.command]
        command = [self.ground.text(word) for word in words]
        folder = self.ground.path("/var/lib/rocketmq")
        self.process = Process.start(command, self.log, folder, env=self.environment)

    def run(self, command: Sequence[str]) -> str:
        """Return the output of a command inside. Raises CalledProcessError."""
        done = subprocess.run(
            [self.ground.text(word) for word in command],
            env=self.environment, cwd=self.ground.folder, capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout

    def is_healthy(self) -> bool:
        """Return the result of HEALTHCHECK."""
        command = [self.ground.text(word) for word in health_check()]
        return subprocess.run(command, env=self.environment, capture_output=True, timeout=60).returncode == 0

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of a page of its metrics port; 0 while nothing listens there."""
        port = self.environment.get("METRICS_PORT") or self.ground.text(METRICS)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()
        except OSError as error:
            return 0, str(error)

    def stop(self, seconds: float = 60) -> int:
        """SIGTERM, as docker stop and Kubernetes send it; the exit status."""
        assert self.process is not None
        return self.process.stop(seconds)
