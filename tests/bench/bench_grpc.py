"""This project's gRPC port beside Apache's proxy, both in local mode, under Apache's gRPC client for Java.

.venv/bin/python -m tests.bench.bench_grpc [--rounds 12] [--millis 700] [--warm-up 20000]

Both servers run at the same time on empty stores, and one virtual machine with the client calls them in turn: sends one after the
other, 64 sends under way, receives with acknowledgements. Each server gets its warm-up calls first. Printed are medians over the
rounds and their ratios, the memory of the server's process at the end, and the time from its start until its port is open.
Needs a JDK and the peers' jars (python -m interop.peers.setup).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs

from interop.peers.grpc_peers.proxies import GrpcServers
from interop.peers.process import Process
from interop.peers.servers import running
from interop.peers.setup import main as set_up_peers
from interop.peers.toolchain import GRPC_VERSIONS, compile_java, jar_directory, java_command, use_top_speed
from twisted_mq.blocking import Admin

SOURCE = Path(__file__).parent / "java" / "grpc" / "GrpcLoad.java"
JARS = f"grpc-java-{GRPC_VERSIONS[0]}"
KINDS = {"apache": "startup successfully", "ours": "boot success"}
"""Kind of the servers -> what Apache's prints when it has started."""
LOADS = {"one": "sends one after the other", "many": "64 sends under way", "take": "received and acknowledged"}
GOALS = {"rate": (1.0, None), "server_us": (None, 0.8), "MiB": (None, 0.2), "ready": (None, 0.2)}
"""Figure -> its least and largest ratio to Apache's."""
TOPIC, GROUP = "GrpcBench", "grpc-bench"
Row = tuple[str, str, str, float]
"""Kind, load, figure, value."""
Figures = dict[tuple[str, str], float]
"""(load, figure) -> value of one kind of server."""


@attrs.define(eq=False)
class TimedServers(GrpcServers):
    """`ready_seconds` is the time from the start of the process until its gRPC port is open."""

    ready_seconds: float = 0.0

    def _launch(self, which: int, name: str, port: int) -> Process:
        began = time.monotonic()
        process = super()._launch(which, name, port)
        process.wait_listening(self.grpc_port if name == "broker" else port)
        self.ready_seconds = time.monotonic() - began  # the broker is launched last
        return process

    @property
    def place(self) -> str:
        return f"{self.broker_process.child.pid}@{self.address}"

    @property
    def anonymous_mib(self) -> float:
        """Resident memory of the process without mapped files."""
        status = Path(f"/proc/{self.broker_process.child.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("RssAnon")]
        return int(line.split()[1]) / 1024

    def prepare(self) -> None:
        """Make the topic and the group."""
        with Admin(self.name_server) as admin:
            admin.create_topic(TOPIC, queues=4, attributes={"message.type": "NORMAL"})
            admin.create_group(GROUP)


def measured(sides: dict[str, TimedServers], folder: Path, arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield the metrics of each round."""
    classes = folder / "classes"
    classes.mkdir()
    compile_java(f"{jar_directory(JARS)}/*", [SOURCE], classes)
    kinds = {one.place: kind for kind, one in sides.items()}
    numbers = map(str, (arguments.warm_up, arguments.rounds, arguments.millis))
    command = java_command(
        folder / "load", "512m", "GrpcLoad", TOPIC, GROUP, *numbers, *kinds, classes=classes, jars=JARS
    )
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=170)
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row["failures"]:
            sys.exit(f"{row['failures']} calls failed: {line}")
        for figure in ("rate", "server_us"):
            yield kinds[row["place"]], row["load"], figure, row[figure]


def medians(arguments: argparse.Namespace, folder: Path) -> dict[str, Figures]:
    """Start both, measure, and return the figures by kind."""
    found: dict[str, dict[tuple[str, str], list[float]]] = {kind: {} for kind in KINDS}
    with ExitStack() as stack:
        sides = {}
        for kind, started in KINDS.items():
            sides[kind] = stack.enter_context(running(TimedServers(kind, folder / kind, started=started)))
            sides[kind].prepare()
        for kind, load, figure, value in measured(sides, folder, arguments):
            found[kind].setdefault((load, figure), []).append(value)
        for kind, one in sides.items():
            found[kind]["process", "MiB"] = [one.anonymous_mib]
            found[kind]["process", "ready"] = [one.ready_seconds]
    return {kind: {name: statistics.median(values) for name, values in rows.items()} for kind, rows in found.items()}


def print_table(found: dict[str, Figures]) -> None:
    print(f"{'':42}{'Apache':>12}{'ours':>12}{'ratio':>8}  goal")
    for (load, figure), ours in found["ours"].items():
        theirs = found["apache"][load, figure]
        least, most = GOALS[figure]
        goal = f">= {least}" if least is not None else f"<= {most}"
        ratio = ours / theirs
        missed = (least is not None and ratio < least) or (most is not None and ratio > most)
        name = f"{LOADS.get(load, load)}, {figure}"
        print(f"{name:42}{theirs:12,.1f}{ours:12,.1f}{ratio:8.2f}  {goal}{' MISSED' if missed else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--millis", type=int, default=700)
    parser.add_argument("--warm-up", type=int, default=20_000)
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    arguments = parser.parse_args()
    if set_up_peers():
        sys.exit("the peers are missing, see above")
    use_top_speed()
    with tempfile.TemporaryDirectory(prefix="bench-grpc-", dir=arguments.dir) as folder:
        print_table(medians(arguments, Path(folder)))


if __name__ == "__main__":
    main()
