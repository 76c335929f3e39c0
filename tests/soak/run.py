"""Strangers and a full disk in turns, beside an honest load: `python -m tests.soak.run --seconds 1200`.

A name server and a broker run as processes. 1,000 connections of strangers do what `tests.soak.attacks` lists, while
Apache's Java client sends and takes messages at a steady pace. Then all stop, and the store is read.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs

from interop.peers.clients import JavaPeer
from interop.peers.process import PeerFailed, Process, wait_until
from tests.soak import load
from tests.soak.attacks import HONEST_TOPIC
from tests.soak.disk import Disk, SimulatedDisk, small_disk
from tests.soak.outcome import Outcome, broken_promises, slow
from tests.soak.servers import ROOT, Log, Servers, anonymous_mib, processor_seconds
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.storage.check import check_store

NAME = "soak"
KEYS = 8
PER_SECOND = 200
DRAIN_SECONDS = 300.0
SETTLE_MS = 5_000
"""After there is space again; sends of this time are not measured, and may be refused."""
SAMPLE_SECONDS = 0.5
WINDOW_SECONDS = 120
"""A round of the disk's plan, and several of each stranger's: what these hold comes and goes meanwhile."""
FEWEST_WINDOWS = 4


@attrs.frozen
class Plan:
    """When the disk is full, in seconds from the start."""

    seconds: float

    @property
    def _period(self) -> float:
        return max(20.0, min(120.0, self.seconds / 3))

    def is_full(self, elapsed: float) -> bool:
        period = self._period
        return period / 2 <= elapsed % period < period / 2 + min(10.0, period / 4)


class Soak:
    """A run in an empty directory."""

    def __init__(self, directory: Path, seconds: float, seed: int, *, simulated: bool) -> None:
        self._directory = directory
        self._seconds = seconds
        self._seed = seed
        self._simulated = simulated
        self._full_ms: list[tuple[int, int]] = []
        self._memory: dict[str, list[tuple[float, float]]] = {"broker": [], "name server": []}
        self._servers = Servers("ours", directory)
        self.outcome = Outcome(seconds)

    def run(self) -> Outcome:
        """Raises what went wrong before anything could be measured."""
        with contextlib.ExitStack() as stack:
            disk = self._start(stack)
            java = JavaPeer(self._directory)
            stack.callback(java.close)
            self._load(java, disk)
            self._stop()
            self._judge()
        return self.outcome

    def _start(self, stack: contextlib.ExitStack) -> Disk:
        servers = self._servers
        servers.store.parent.mkdir()
        disk = None if self._simulated else small_disk(servers.store.parent)
        servers.simulated_disk = disk is None
        if disk is not None:
            stack.callback(disk.close)
        stack.callback(servers.stop)
        servers.start()
        servers.make_topics()
        return disk or SimulatedDisk(servers.processes["broker"])

    def _load(self, java: JavaPeer, disk: Disk) -> None:
        outcome = self.outcome
        outcome.disk = disk.name
        java.request(
            "soak_start", name=NAME, name_server=self._servers.name_server, topic=HONEST_TOPIC, keys=KEYS,
            per_second=PER_SECOND, directory=str(self._directory),
        )  # fmt: skip
        with self._strangers():
            self._watch(disk)
        java.request("soak_end", name=NAME)

        def missing() -> int:
            outcome.missing = java.request("soak_missing", name=NAME)
            return outcome.missing

        with contextlib.suppress(PeerFailed):
            wait_until(lambda: not missing(), "all that was acknowledged is delivered", DRAIN_SECONDS)
        java.request("soak_close", name=NAME)

    @contextlib.contextmanager
    def _strangers(self) -> Iterator[None]:
        """Their process beside the block; what they saw goes into the outcome."""
        servers = self._servers
        command = [sys.executable, "-m", "tests.soak.strangers", json.dumps(servers.ports)]
        command += [str(servers.put_large_message()), str(self._seed)]
        log = self._directory / "strangers.log"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        crowd = Process.start(command, log, ROOT, **pipes)
        try:
            yield
            printed, _ = crowd.child.communicate(timeout=60)
        finally:
            crowd.stop()
        if crowd.child.returncode:
            raise RuntimeError(f"the strangers ended with {crowd.child.returncode}:\n{crowd.output_tail()}")
        seen = json.loads(printed)
        self.outcome.connections, self.outcome.strangers = seen["connections"], seen["attacks"]

    def _watch(self, disk: Disk) -> None:
        """Fill and drain the disk by plan, and look at the memory, until the time is over."""
        plan, began, full_since = Plan(self._seconds), time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < self._seconds:
            if plan.is_full(elapsed) and not full_since:
                full_since = _now_ms()
                disk.fill()
            elif full_since and not plan.is_full(elapsed):
                disk.drain()
                self._full_ms.append((full_since, _now_ms()))
                full_since = 0
            for name, process in self._servers.processes.items():
                if process.child.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.child.returncode}:\n{process.output_tail()}")
                self._memory[name].append((elapsed, anonymous_mib(process)))
            time.sleep(SAMPLE_SECONDS)
        if full_since:
            disk.drain()
            self._full_ms.append((full_since, _now_ms()))

    def _stop(self) -> None:
        processes = self._servers.processes
        self.outcome.processor_seconds = {name: processor_seconds(process) for name, process in processes.items()}
        self.outcome.exit_status = {name: process.stop(60) for name, process in processes.items()}

    def _judge(self) -> None:
        outcome = self.outcome
        sent = load.read_sent(self._directory / "sent.txt")
        self._judge_sends(sent)
        received = list(load.read_received(self._directory / "received.txt"))
        outcome.deliveries = len({name for _, name in received})
        outcome.delivered_again = len(received) - outcome.deliveries
        outcome.delivery_p99_ms = load.percentile([age for age, _ in received], 99)
        outcome.wrong = load.wrong(sent, load.stored(self._servers.store))
        outcome.wrong += map(str, check_store(str(self._servers.store), index_sizes=IndexSizes(100_000, 400_000)))
        if (self._servers.store / "abort").exists():
            outcome.wrong.append("the broker left abort")
        for name, process in self._servers.processes.items():
            log = Log(process.output())
            outcome.long_turns[name] = len(log.long_turns)
            outcome.longest_turns[name] = log.long_turns[:5]
            outcome.faults += log.faults
            outcome.no_space += log.no_space
        self._judge_memory()

    def _judge_sends(self, sent: list[load.Sent]) -> None:
        outcome = self.outcome
        beside = [one for one in sent if self._disk_was_full(one)]
        outcome.sends = Counter(one.status for one in sent)
        outcome.sends_beside_a_full_disk = Counter(one.status for one in beside)
        micros = [one.micros for one in sent if not self._disk_was_full(one)]
        outcome.send_p50_ms = load.percentile(micros, 50) / 1000
        outcome.send_p99_ms = load.percentile(micros, 99) / 1000
        outcome.slowest_send_ms = max(micros) / 1000

    def _disk_was_full(self, one: load.Sent) -> bool:
        end_ms = one.due_ms + one.micros / 1000
        return any(begin <= end_ms and one.due_ms < end + SETTLE_MS for begin, end in self._full_ms)

    def _judge_memory(self) -> None:
        (self._directory / "memory.json").write_text(json.dumps(self._memory))
        for name, samples in self._memory.items():
            self.outcome.most_memory[name] = round(max(size for _, size in samples), 1)
            self.outcome.memory_a_minute[name] = growth_a_minute(samples)


def growth_a_minute(samples: list[tuple[float, float]]) -> float:
    """The slope of (second, size), of the second half, when strangers have invented what they may.

    It is that of the least sizes of each two minutes: what peers do not take comes and goes.
    """
    least: dict[int, float] = {}
    half = samples[len(samples) // 2 :]
    for second, size in half:
        window = int((second - half[0][0]) / WINDOW_SECONDS)
        least[window] = min(size, least.get(window, size))
    if len(least) < FEWEST_WINDOWS:
        return 0.0
    return round(statistics.linear_regression(list(least), list(least.values())).slope * 60 / WINDOW_SECONDS, 2)


def _now_ms() -> int:
    return int(time.time() * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SOAK_SECONDS", "1200")))
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--simulated", action="store_true", help="a simulated full disk, also where one can be mounted")
    parser.add_argument("--keep", type=Path, help="a new folder for the logs, and for what was sent and received")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mq-soak-") as folder:
        outcome = Soak(Path(folder), options.seconds, options.seed, simulated=options.simulated).run()
        if options.keep is not None:
            shutil.copytree(folder, options.keep, ignore=shutil.ignore_patterns("store"))
    print(outcome.text())
    problems = broken_promises(outcome) + slow(outcome)
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
