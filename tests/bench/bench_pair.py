"""Runs one load on several brokers in turn, a moment each: ratios that hold on a machine whose speed changes by the minute.

.venv/bin/python -m tests.bench.bench_pair [--load single,batch,ragged,large,async] [--rounds 16] [--millis 500]
    [--serialize ROCKETMQ] [ours apache DIR ...]

Sides are `ours`, `apache`, or the root of another copy of this project's sources, to measure a change. All brokers run
at the same time, and one virtual machine with Apache's client sends to one after the other: with 64 threads single
messages (`large`: of 4 KiB), with 4 threads batches of 32, or 1,000 asynchronous sends at a time. Printed are medians over
the rounds, and medians of the ratios to the last side.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import attrs

from interop.peers.process import Process
from interop.peers.servers import COMMANDS, Cluster
from interop.peers.setup import main as set_up_peers
from interop.peers.toolchain import jar_directory, java_command, use_top_speed

SOURCES = Path(__file__).parent / "java"
THREADS = {"single": 64, "batch": 4, "ragged": 4, "large": 64, "async": 1}
USUAL = ("single", "batch", "ragged")
FIGURES = ("rate", "broker_us", "p50_us", "p99_us")
HEAD = f"{'load':8}{'side':28}" + "".join(f"{name:>12}{'ratio':>7}" for name in FIGURES)
Rounds = list[dict[str, float]]


@attrs.define(eq=False)
class Side(Cluster):
    """A cluster whose commands run with the sources in `sources`, where it is ours."""

    sources: str = ""

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {"mappedFileSizeCommitLog": 256 << 20}

    def _launch(self, which: int, name: str, port: int) -> Process:
        files = (self.directory / "namesrv.conf", self.directory / "broker.conf")
        command = COMMANDS[self.kind](self.directory / "home", *files)[which]
        environment = {**os.environ, "PYTHONPATH": self.sources} if self.sources else None
        process = Process.start(command, self.directory / f"{name}.log", self.directory, env=environment)
        process.wait_listening(port)
        return process

    @property
    def place(self) -> str:
        """The broker's process and the name server, for the load generator."""
        return f"{self.broker_process.child.pid}@{self.name_server}"


def make_side(name: str, folder: Path) -> Side:
    if name in COMMANDS:
        return Side(name, folder)
    return Side("ours", folder, sources=str(Path(name).resolve()))


def compiled(folder: Path) -> Path:
    """The classes of the load generators. Raises CalledProcessError."""
    classes = folder / "classes"
    javac = ["javac", "-nowarn", "-cp", f"{jar_directory()}/*", "-d", str(classes)]
    subprocess.run([*javac, *map(str, SOURCES.glob("*.java"))], check=True)
    return classes


def measure(
    sides: Sequence[Side],
    load: str,
    threads: int,
    classes: Path,
    rounds: int,
    millis: int,
    serialize: str,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> list[Rounds]:
    """Each side's figures, round by round; the properties are those of the clients' virtual machine."""
    home = sides[0].directory / "load"
    command = java_command(
        home, "1g", "PairLoad", load, str(threads), str(rounds), str(millis),
        *(side.place for side in sides), classes=classes,
    )  # fmt: skip
    more = {"rocketmq.serialize.type": serialize, **properties}
    command[1:1] = [f"-D{name}={value}" for name, value in more.items()]
    longest = 120 + (rounds + 30) * len(sides) * millis / 500
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=longest)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"round"')]
    return [[row for row in rows if row["side"] == number] for number in range(len(sides))]


def print_rows(load: str, names: list[str], results: list[Rounds]) -> None:
    for name, rounds in zip(names, results, strict=True):
        cells = []
        for figure in FIGURES:
            ratios = (one[figure] / last[figure] for one, last in zip(rounds, results[-1], strict=True))
            cells.append(f"{statistics.median(one[figure] for one in rounds):12,.1f}{statistics.median(ratios):7.2f}")
        print(f"{load:8}{name[-27:]:28}" + "".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sides", nargs="*", default=["ours", "apache"])
    parser.add_argument("--load", type=lambda text: text.split(","), default=list(USUAL))
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--millis", type=int, default=500)
    parser.add_argument("--serialize", choices=["JSON", "ROCKETMQ"], default="JSON")
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    arguments = parser.parse_args()
    if set_up_peers():
        sys.exit("the peers are missing, see above")
    use_top_speed()
    folder = Path(tempfile.mkdtemp(prefix="bench-pair-", dir=arguments.dir))
    sides = [make_side(name, folder / str(number)) for number, name in enumerate(arguments.sides)]
    try:
        classes = compiled(folder)
        for side in sides:
            side.start()
        print(HEAD)
        for load in arguments.load:
            results = measure(
                sides, load, THREADS[load], classes, arguments.rounds, arguments.millis, arguments.serialize
            )
            print_rows(load, arguments.sides, results)
    finally:
        for side in sides:
            side.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
