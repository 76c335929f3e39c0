"""20 minutes of client programs whose brokers restart and connections break: `python -m tests.soak.clients.run`.

A process for each face sends, consumes slowly, and has members that come and go. Then the store is read.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from interop.peers.process import Process, wait_until
from tests.soak import load
from tests.soak.clients.outcome import FaceOutcome, broken_promises, growing
from tests.soak.clients.program import FACES
from tests.soak.run import SAMPLE_SECONDS, growth_a_minute
from tests.soak.servers import FAULTS, ROOT, anonymous_mib, processor_seconds
from tests.support.faces import ServedCluster, stopped
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.storage.check import check_store
from twisted_mq.testing.cluster import SMALL_LOG_FILE_BYTES
from twisted_mq.testing.faults import Faults
from twisted_mq.testing.server import NEVER_MS

QUEUES = 4
LONGEST_PERIOD_SECONDS = 20.0
"""Between two troubles."""


class ClientSoak:
    """A run in an empty directory."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self._directory = directory
        self._seconds = seconds
        self._store = directory / "store"
        self._samples: dict[str, list[tuple[float, float]]] = {face: [] for face in FACES}
        self.outcomes = {face: FaceOutcome() for face in FACES}
        self.troubles = 0

    def run(self) -> dict[str, FaceOutcome]:
        """Raises what went wrong before anything could be measured."""
        options = {"mapped_file_size_commit_log": SMALL_LOG_FILE_BYTES, "clean_resource_interval": NEVER_MS}
        with stopped(ServedCluster(store_path=str(self._store), broker_options=options)) as served:
            topics = [TopicConfig(topic_name=face, read_queue_nums=QUEUES, write_queue_nums=QUEUES) for face in FACES]
            served.do(lambda: served.cluster.broker.controller.topics.update(topics))
            self._load(served)
        self._judge()
        return self.outcomes

    def _load(self, served: ServedCluster) -> None:
        with contextlib.ExitStack() as stack:
            processes = {face: self._start(face, served.namesrv) for face in FACES}
            for process in processes.values():
                stack.callback(process.stop)
            self._watch(processes, itertools.cycle(troubles(served)))
            for face, process in processes.items():
                printed = process.child.communicate()[0]
                self.outcomes[face].exit_status = process.child.returncode
                if printed:
                    self.outcomes[face].add(json.loads(printed))

    def _start(self, face: str, namesrv: str) -> Process:
        command = [sys.executable, "-m", "tests.soak.clients.program", face, namesrv, face, str(self._directory)]
        log = self._directory / f"{face}.log"
        return Process.start([*command, str(self._seconds)], log, ROOT, stdout=subprocess.PIPE)

    def _watch(self, processes: dict[str, Process], troubles: Iterator[Callable[[], None]]) -> None:
        """Look at what runs and make trouble in turns; when a process is about to drain there is no more."""
        wait_until(lambda: all(map(self._has_sent, processes)), "each face sends")
        began = time.monotonic()
        period = min(LONGEST_PERIOD_SECONDS, self._seconds / 4)
        due = period
        while running := [face for face, process in processes.items() if process.child.poll() is None]:
            elapsed = time.monotonic() - began
            if due <= elapsed < self._seconds:
                next(troubles)()
                self.troubles += 1
                due = elapsed + period
            for face in running:
                self._look_at(face, processes[face], elapsed)
            time.sleep(SAMPLE_SECONDS)

    def _has_sent(self, face: str) -> bool:
        path = self._directory / f"{face}.sent"
        return path.is_file() and path.stat().st_size > 0

    def _look_at(self, face: str, process: Process, elapsed: float) -> None:
        with contextlib.suppress(OSError, IndexError):  # it ended meanwhile
            outcome = self.outcomes[face]
            outcome.most_files = max(outcome.most_files, len(os.listdir(f"/proc/{process.child.pid}/fd")))
            outcome.processor_seconds = processor_seconds(process)
            self._samples[face].append((elapsed, anonymous_mib(process)))

    def _judge(self) -> None:
        wrong = [str(one) for one in check_store(str(self._store))]
        for face, outcome in self.outcomes.items():
            sent = load.read_sent(self._directory / f"{face}.sent")
            outcome.wrong = wrong + load.wrong(sent, load.stored(self._store, face))
            log = (self._directory / f"{face}.log").read_text()
            outcome.faults = [line for line in log.splitlines() if any(word in line for word in FAULTS)]
            outcome.most_memory = round(max(size for _, size in self._samples[face]), 1)
            outcome.memory_a_minute = growth_a_minute(self._samples[face])


def troubles(served: ServedCluster) -> list[Callable[[], None]]:
    """Return the faults of the broker, one after the other."""
    faults = Faults(lambda: served.cluster.broker, served.reactor, served.do)

    def during(fault: contextlib.AbstractContextManager[object]) -> None:
        with fault:
            time.sleep(1)

    def cut() -> None:
        for channel in list(served.cluster.broker._ports.factory.channels):
            channel.abort()

    return [
        lambda: served.run(served.cluster.restart_broker),
        lambda: during(faults.losing_connections(times=5)),
        lambda: served.do(cut),
        lambda: during(faults.slow(0.5, times=20)),
        lambda: during(faults.busy(times=20)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SOAK_SECONDS", "1200")))
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="mq-client-soak-") as folder:
        soak = ClientSoak(Path(folder), seconds)
        outcomes = soak.run()
    print(json.dumps({"seconds": seconds, "troubles": soak.troubles}))
    for face, outcome in outcomes.items():
        print(f"{face}: {json.dumps(attrs.asdict(outcome))}")
    problems = broken_promises(outcomes, seconds) + growing(outcomes)
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
