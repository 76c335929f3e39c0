"""The servers of a week: each its own process with files of its own, on a clock that days are added to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import attrs

from interop.peers.process import Process, free_port, wait_until
from tests.support.shifted_clock import ShiftedClock

TWISTD = Path(sys.executable).with_name("twistd")
READY_SECONDS = 120


@attrs.define
class Server:
    """A name server or a broker. `port` is where clients connect; `metrics` is the port of /ready."""

    kind: str
    folder: Path
    clock: ShiftedClock
    settings: Mapping[str, object]
    port: int = attrs.field(factory=free_port)
    metrics: int = attrs.field(factory=free_port)
    process: Process | None = None
    sources: Path | None = None
    """The folder with the sources of another version that this server runs."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def start(self) -> None:
        """Write its file, start it, and wait until it is ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "server.conf"
        shown = {"metricsExporterType": "PROM", "metricsPromExporterHost": "127.0.0.1"}
        own = {"listenPort": self.port, "bindAddress": "127.0.0.1", "metricsPromExporterPort": self.metrics, **shown}
        file.write_text("".join(f"{key}={value}\n" for key, value in {**own, **self.settings}.items()))
        command = [str(TWISTD), "--nodaemon", "--pidfile=", f"--logfile={self.log}", self.kind, "--config", str(file)]
        output = self.folder / "output.log"
        other = {} if self.sources is None else {"PYTHONPATH": str(self.sources)}
        environment = {**os.environ, **self.clock.environment(), **other}
        self.process = Process.start(command, output, self.folder, env=environment)
        wait_until(self.is_ready, lambda: f"{self.folder.name}: {output.read_text()}", READY_SECONDS)

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.child.poll() is None, f"{self.folder.name} ended: {self.process.output_tail()}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/ready", timeout=10) as answer:
                return bool(json.load(answer)["ok"])
        except (urllib.error.HTTPError, OSError):
            return False

    def stop(self) -> None:
        """SIGTERM; a stop leaves no file `abort`."""
        assert self.process is not None
        code = self.process.stop(120)
        assert code in (0, -signal.SIGTERM), (self.folder.name, code)
        assert not (self.store / "abort").exists()

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()

    def rotate(self) -> None:
        """Rotate like logrotate: move the log away, then send SIGHUP."""
        assert self.process is not None
        moved = self.log.with_suffix(".log.1")
        self.log.rename(moved)
        self.process.child.send_signal(signal.SIGHUP)
        wait_until(self.log.exists, f"{self.log} is opened anew")

    def first_offset(self) -> int:
        """Return the first offset of the log, from the names of its files."""
        return min(int(file.name) for file in (self.store / "commitlog").iterdir() if file.name.isdigit())


def command(*words: str) -> str:
    """Return the output of one of the project's commands. Raises AssertionError if it fails."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name(words[0])), *words[1:]], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout
