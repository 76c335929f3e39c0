"""A driver program with its own Spark, and the processes below it: Java and the Python workers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
from pathlib import Path

import attrs

from interop.peers.process import PeerFailed, Process, wait_until

TASKS = "-m pyspark.daemon pyspark.worker"
"""The daemon whose forks run tasks, by the end of its command line."""
PLANNER = "-m pyspark.sql.streaming.python_streaming_source_runner"
"""Command of the process that plans the batches of a stream."""
ROOT = Path(__file__).parents[2]


@attrs.frozen
class Entry:
    """A process as the system lists it."""

    pid: int
    parent: int
    command: str


def _entry(pid: int) -> Entry | None:
    """None where it has ended meanwhile."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Entry(pid, int(status.rpartition(")")[2].split()[1]), command)


def below(root: int) -> list[Entry]:
    """All processes that descend from one, parents before children."""
    listed = [_entry(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    children: dict[int, list[Entry]] = {}
    for entry in listed:
        if entry is not None:
            children.setdefault(entry.parent, []).append(entry)
    found: list[Entry] = []
    waiting = [root]
    while waiting:
        found += (new := children.get(waiting.pop(0), []))
        waiting += [entry.pid for entry in new]
    return found


def end(pid: int) -> None:
    """kill -9; nothing where it has ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@attrs.define
class Driver:
    """`python -m tests.spark_proof.driver JOB SPEC`, started again whenever it was killed. Its output is in `log`."""

    job: str
    spec: dict[str, object]
    log: Path
    random: random.Random
    _process: Process | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.spark_proof.driver", self.job, json.dumps(self.spec)]
        self._process = Process.start(command, self.log, ROOT)

    @property
    def process(self) -> Process:
        assert self._process is not None
        return self._process

    @property
    def is_running(self) -> bool:
        return self.process.child.poll() is None

    def check(self) -> None:
        """Raises PeerFailed where it ended by itself."""
        if not self.is_running:
            code = self.process.child.returncode
            raise PeerFailed(f"the driver ended with {code}:\n{self.process.output_tail()}")

    def kill(self) -> None:
        """Java first: without it the workers end by themselves, and no query goes on beside the next driver."""
        family = below(self.process.child.pid)
        for pid in (*(entry.pid for entry in family), self.process.child.pid):
            end(pid)
        self.process.child.wait()
        wait_until(
            lambda: not any(Path(f"/proc/{entry.pid}").exists() for entry in family), "the driver's processes end"
        )

    def workers(self, *, planners: bool = False) -> list[int]:
        """Python workers that run tasks, and those that plan a stream's batches."""
        family = below(self.process.child.pid)
        daemons = {entry.pid for entry in family if entry.command.endswith(TASKS)}
        found = [entry.pid for entry in family if entry.parent in daemons]
        return found + [entry.pid for entry in family if planners and entry.command.endswith(PLANNER)]

    def kill_worker(self, *, planners: bool = False) -> bool:
        """Kill any worker; return False without a running one."""
        there = self.workers(planners=planners)
        if there:
            end(self.random.choice(there))
        return bool(there)
