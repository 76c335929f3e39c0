"""A child process: started, awaited and stopped by its object, with its output in a file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 120
"""Timeout for working operations: on a busy machine Apache's client can skip a heartbeat and wait for its next one, 30 s
later."""


class PeerFailed(Exception):
    """A peer process did not do what a test needs; carries the end of its output."""


def wait_until(promise: Callable[[], object], what: str | Callable[[], str], seconds: float = PATIENCE_SECONDS) -> None:
    """Ask `promise` again and again until it is true. Raises PeerFailed after `seconds`, with `what` as it is by then."""
    deadline = time.monotonic() + seconds
    while not promise():
        if time.monotonic() > deadline:
            raise PeerFailed(f"not within {seconds} s: {what if isinstance(what, str) else what()}")
        time.sleep(POLL_SECONDS)


PORTS = range(12_000, 32_000)
"""Below those that the system gives to outgoing connections, which could take a port between its choice and its use."""
NEIGHBOURS = 4
"""A broker's ports: two below its own (one is the fast port), and the one above it (HA port)."""
LAST_BLOCK = Path(tempfile.gettempdir()) / f"mq-test-ports-{os.getuid()}"
"""The number of the ports that were given last. All test processes of a user count on from it."""


def next_block() -> int:
    """Return the first of NEIGHBOURS ports that no test process has been given lately: the others may not be open yet."""
    with LAST_BLOCK.open("a+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        file.seek(0)
        blocks = len(PORTS) // NEIGHBOURS
        last = file.read()
        block = (int(last) + 1) % blocks if last else random.randrange(blocks)
        file.truncate(0)
        file.write(str(block))
    return PORTS[block * NEIGHBOURS]


def free_port() -> int:
    """A loopback port that is free together with the two below and the one above it (fast port and HA port)."""
    for _ in range(100):
        with contextlib.ExitStack() as probes:
            first = next_block()
            try:
                for port in range(first, first + NEIGHBOURS):
                    probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first + 2
    raise PeerFailed("no four neighbouring free ports on loopback")


@attrs.define(eq=False)
class Process:
    """A running child. Its standard output and error go to `log`."""

    log: Path
    child: subprocess.Popen[bytes]
    started_at: int = 0
    """Size of the log when this child began to write."""

    @classmethod
    def start(cls, command: list[str], log: Path, directory: Path, **popen: object) -> Process:
        with log.open("ab") as output:
            began = output.tell()
            popen.setdefault("stdout", output)
            popen.setdefault("stdin", subprocess.DEVNULL)
            child = subprocess.Popen(command, stderr=output, cwd=directory, **popen)  # type: ignore[call-overload]
        return cls(log, child, began)

    def output(self) -> str:
        return self.log.read_bytes()[self.started_at :].decode(errors="replace")

    def output_tail(self) -> str:
        return self.output()[-2000:]

    def wait_listening(self, port: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Return once the child accepts on the loopback port. Raises PeerFailed when it ends before."""

        def listening() -> bool:
            if self.child.poll() is not None:
                raise PeerFailed(f"ended with {self.child.returncode} before listening:\n{self.output_tail()}")
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 0.5).close()
                return True
            return False

        wait_until(listening, f"port {port} accepts\n{self.output_tail()}", seconds)

    def stop(self, seconds: float = 30) -> int:
        """SIGTERM, and SIGKILL after `seconds`. Returns the exit status; stopping twice is harmless."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.child.wait()

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to store anything."""
        self.child.kill()
        self.child.wait()
