"""This project's broker beside Apache's, one after the other, each on an empty store: sends, batches, reads, start, memory.

.venv/bin/python -m tests.bench.bench_compare [--rounds 3] [--seconds 5] [--only sync64,drain] [--serialize ROCKETMQ]

Each round starts a name server and a broker of each side (asynchronous flush) and puts the loads of bench_pair on it through
Apache's Java client, each warmed up for ten seconds and measured in slices of half a second; then one consumer drains what the
batches left, and messages at a steady pace are timed from send to listener. Printed are medians over the rounds. On a
machine whose speed changes only the ratios mean something; bench_pair is nearer to the truth where it has the load.
Needs a JDK and the peers' jars (python -m interop.peers.setup).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from interop.peers.process import Process
from interop.peers.servers import COMMANDS
from interop.peers.setup import main as set_up_peers
from interop.peers.toolchain import java_command, use_top_speed
from tests.bench.bench_pair import Side, compiled, measure

SENDS = {
    "sync1": ("single", 1),
    "sync64": ("single", 64),
    "sync64x4k": ("large", 64),
    "async": ("async", 1),
    "batch32": ("batch", 4),
}
"""Name -> bench_pair's load and how many threads send."""
DRAINED, PACED_RATE = 300_000, 1000
READS = {"drain": ("Pair_batch", DRAINED), "paced": ("Paced", PACED_RATE)}
LOADS = (*SENDS, *READS)
SLICE_MILLIS = 500
Figures = dict[str, float]


@attrs.define(eq=False)
class TimedSide(Side):
    """`ready_seconds`: from the start of the broker's process until it listens."""

    ready_seconds: float = 0.0

    def _launch(self, which: int, name: str, port: int) -> Process:
        began = time.monotonic()
        process = super()._launch(which, name, port)
        self.ready_seconds = time.monotonic() - began  # the broker is launched last
        return process

    @property
    def anonymous_mib(self) -> float:
        """Resident memory of the broker without mapped files."""
        status = Path(f"/proc/{self.place.partition('@')[0]}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("RssAnon")]
        return int(line.split()[1]) / 1024


def figures(kind: str, folder: Path, classes: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Name and value of each figure of one fresh start."""
    side = TimedSide(kind, folder)
    try:
        side.start()
        yield "ready, s", side.ready_seconds
        for load in arguments.only:
            found = sends(side, load, classes, arguments) if load in SENDS else reads(side, load, classes)
            yield from ((f"{load}, {name}", value) for name, value in found.items())
        yield "anonymous memory, MiB", side.anonymous_mib
    finally:
        side.stop()
        shutil.rmtree(folder, ignore_errors=True)


def sends(side: Side, load: str, classes: Path, arguments: argparse.Namespace) -> Figures:
    """Medians of the slices."""
    name, threads = SENDS[load]
    slices = arguments.seconds * 1000 // SLICE_MILLIS
    (rounds,) = measure([side], name, threads, classes, slices, SLICE_MILLIS, arguments.serialize)
    return {figure: statistics.median(one[figure] for one in rounds) for figure in ("rate", "broker_us", "p99_us")}


def reads(side: Side, load: str, classes: Path) -> Figures:
    topic, number = READS[load]
    command = java_command(
        side.directory / "load", "1g", "ReadLoad", side.place, load, topic, str(number), classes=classes
    )
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def print_table(results: dict[tuple[str, str], list[float]]) -> None:
    print(f"{'':28}{'Apache':>12}{'ours':>12}{'ratio':>8}")
    for figure in dict.fromkeys(figure for figure, _ in results):
        theirs, ours = (statistics.median(results.get((figure, kind), [float("nan")])) for kind in ("apache", "ours"))
        print(f"{figure:28}{theirs:12,.1f}{ours:12,.1f}{ours / theirs:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(LOADS))
    parser.add_argument("--serialize", choices=["JSON", "ROCKETMQ"], default="JSON")
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    arguments = parser.parse_args()
    if set_up_peers():
        sys.exit("the peers are missing, see above")
    use_top_speed()
    root = Path(tempfile.mkdtemp(prefix="bench-compare-", dir=arguments.dir))
    results: dict[tuple[str, str], list[float]] = {}
    try:
        classes = compiled(root)
        for number in range(arguments.rounds):
            for kind in list(COMMANDS)[:: 1 if number % 2 == 0 else -1]:
                for figure, value in figures(kind, root / f"{number}-{kind}", classes, arguments):
                    print(f"round {number} {kind:8}{figure:28}{value:12,.1f}", file=sys.stderr, flush=True)
                    results.setdefault((figure, kind), []).append(value)
        print_table(results)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
