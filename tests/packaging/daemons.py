"""Starts `twistd` of some interpreter in a subprocess and follows its log."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

TWISTD = "from twisted.scripts.twistd import run; run()"
LOG_SECONDS = 60
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})


def twistd_command(python: str, *words: str) -> list[str]:
    return [python, "-c", TWISTD, *words]


def run_twistd(python: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run to its end; the folder is the working directory and the home."""
    return subprocess.run(
        twistd_command(python, *words), cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=60
    )


def environment(home: Path) -> dict[str, str]:
    """This process's, without what would lead to other sources or name servers."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NAMESRV_ADDR")}
    return {**kept, "HOME": str(home)}


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + LOG_SECONDS
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.05)


class RunningDaemon:
    """A daemon in the foreground; use as a context manager, which kills what is left of it."""

    def __init__(self, python: str, folder: Path, *words: str, more: Mapping[str, str] = NOTHING_MORE) -> None:
        """`more` is added to the environment."""
        self.lines: list[str] = []
        self._held = b""
        self._process = subprocess.Popen(
            twistd_command(python, "--nodaemon", "--pidfile=", *words),
            cwd=folder,
            env={**environment(folder), **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> RunningDaemon:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def wait_for(self, text: str) -> str:
        """The first log line with `text` in it; an error with the whole log where none comes."""
        until = time.monotonic() + LOG_SECONDS
        while True:
            for line in self.lines:
                if text in line:
                    return line
            if time.monotonic() > until or not self._read(until):
                raise AssertionError(f"no {text!r} in the log:\n" + "\n".join(self.lines))

    def terminate(self) -> int:
        """SIGTERM; returns the exit status once the process has ended, its last lines read."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def ended(self) -> int:
        """The exit status, its last lines read."""
        while self._read(time.monotonic() + LOG_SECONDS):
            pass
        return self._process.wait(LOG_SECONDS)

    def _read(self, until: float) -> bool:
        """Take in more of the log; False at its end."""
        descriptor = self._process.stdout.fileno()
        if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        data = os.read(descriptor, 65536)
        *whole, self._held = (self._held + data).split(b"\n")
        self.lines += [one.decode(errors="replace") for one in whole]
        return bool(data)
