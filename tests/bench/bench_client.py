"""The client's faces beside Apache's Java client and the C++ client's wheel, on one broker of this project's, in one run.

.venv/bin/python -m tests.bench.bench_client [--rounds 3] [--seconds 1.5] [--backlog 60000] [--minutes 6]
    [--only many,listen] [--sides java,deferred]

Every client is a process that lives through the run; they take turns, a moment each, so that a machine whose speed changes by
the minute meets all alike. `blocking-1` and `futures-1` are plain calls in a process that has one core. Loads: `one` send after
the other, `many` (64 in flight), `window` (1,000 in flight), `batch` (4 times 32 messages), `listen` (a backlog to a listener, up
to 32 messages a call; the wheel has one a call) and `iterate` (a backlog message by message, each acknowledged). Bodies have 128
bytes. Printed are medians over the rounds: messages a second, and the processor time of the client's process a message; with
each its ratio to Java's, and the rate's to the wheel's. A first round warms up. What is not done after `--minutes` is left out.
Clients and broker run on the Python that runs this: of two builds of one version one may be a fifth faster.
Java's side needs a JDK and the peers' jars (python -m interop.peers.setup), the wheel `rocketmq`; a side that is missing is
named and left out.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import itertools
import json
import os
import platform
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from interop.peers.setup import prepare
from interop.peers.toolchain import java_command, use_top_speed
from tests.bench.bench_pair import Side, compiled
from tests.bench.client_sides import BATCH, BODY, SENDERS

JAVA, CPP = "java", "cpp"
PYTHON_SIDES = ("deferred", "aio", "uvloop", "blocking")
FUTURES = "futures"
"""Plain calls again, of one thread that does not wait for each."""
ONE_CORE = "-1"
"""Behind the name of a side: its process has one core, so that its threads' data is in one cache."""
WAITING = (JAVA, CPP, *PYTHON_SIDES, "blocking-1")
SIDES = (*WAITING, FUTURES, "futures-1")
LOADS: Mapping[str, tuple[str, ...]] = {
    "one": WAITING,
    "many": SIDES,
    "window": (JAVA, CPP, "deferred", "aio", "uvloop", FUTURES, "futures-1"),
    "batch": WAITING,
    "listen": WAITING,
    "iterate": ("aio", "uvloop", "blocking", "blocking-1"),
}
"""Load -> who has it."""
BACKLOG_TOPIC = "Backlog"
WARM_SECONDS = 2.0
"""The least time that a virtual machine needs to compile a load."""
ANSWER_SECONDS = 60.0
"""The longest time of one moment of a client, with its start."""
HEAD = f"{'load':8} {'client':10} {'messages/s':>11} {'of Java':>8} {'of C++':>7} {'us each':>8} {'of Java':>8}"
Found = dict[str, float]


@attrs.define(eq=False)
class Client:
    """The process of one side. Raises SideFailed once it does not answer."""

    name: str
    child: subprocess.Popen[bytes]
    _left: bytes = b""

    def ask(self, line: str, seconds: float) -> Found:
        """The result of a task."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(line.encode() + b"\n")
            self.child.stdin.flush()
        except OSError as error:
            raise SideFailed(f"ended with {self.child.wait()}") from error
        found: Found = json.loads(self._line(time.monotonic() + seconds))
        if "error" in found:
            raise SideFailed(found["error"])
        return found

    def _line(self, end: float) -> bytes:
        """The next line of JSON; lines that a library prints are skipped."""
        assert self.child.stdout is not None
        while True:
            line, more, rest = self._left.partition(b"\n")
            if more:
                self._left = rest
                if line.startswith(b"{"):
                    return line
                continue
            ready, _, _ = select.select([self.child.stdout], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self.child.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise SideFailed("no answer in time" if not ready else f"ended with {self.child.wait()}")
            self._left += data

    def stop(self) -> None:
        self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            assert pipe is not None
            pipe.close()


class SideFailed(Exception):
    """A client ended, or has no answer."""


def missing_sides(wanted: list[str]) -> Iterator[tuple[str, str]]:
    """Sides that cannot run here, and why."""
    problem = prepare() if JAVA in wanted else None
    if problem is not None:
        yield JAVA, problem
    for name, module in ((CPP, "rocketmq"), ("uvloop", "uvloop")):
        if name in wanted and importlib.util.find_spec(module) is None:
            yield name, f"the package {module} is not installed"


def started(name: str, namesrv: str, root: Path, classes: Path | None) -> Client:
    """The side's process, with a home of its own for logs and offsets."""
    face = name.removesuffix(ONE_CORE)
    home = root / name
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.bench.client_sides", face, namesrv]
    if name == JAVA:
        command = java_command(home, "1g", "ClientLoad", namesrv, classes=classes)
    with (home / "errors.log").open("wb") as errors:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "HOME": str(home)}
        )
    if name != face:
        os.sched_setaffinity(child.pid, {max(os.sched_getaffinity(0))})
    return Client(name, child)


def fill(namesrv: str, count: int) -> None:
    from twisted_mq.blocking import Message, Producer

    with Producer(namesrv, group="fill") as producer:
        for load in SENDERS:
            producer.send(Message(f"Sent-{load}", BODY))
        for _ in range(count // BATCH):
            producer.send_batch([Message(BACKLOG_TOPIC, BODY)] * BATCH)


@attrs.define(eq=False)
class Run:
    """All rounds, until the time is over. `start` makes the client of a side."""

    start: Callable[[str], Client]
    arguments: argparse.Namespace
    names: list[str]
    deadline: float
    clients: dict[str, Client] = attrs.Factory(dict)
    failed: collections.Counter[tuple[str, str]] = attrs.Factory(collections.Counter)
    results: dict[tuple[str, str], list[Found]] = attrs.Factory(dict)
    _groups: Iterator[int] = attrs.Factory(itertools.count)

    def rounds(self) -> None:
        for number in range(-1, self.arguments.rounds):
            for load in self.arguments.only:
                for name in LOADS[load] if number % 2 else reversed(LOADS[load]):
                    if name in self.names and self.failed[load, name] < 2 and time.monotonic() < self.deadline:
                        self._moment(number, load, name)

    def _moment(self, number: int, load: str, name: str) -> None:
        """Run one client's turn; a load that it failed twice is not given to it again."""
        warm = number < 0
        topic = f"Sent-{load}" if load in SENDERS else BACKLOG_TOPIC
        seconds = WARM_SECONDS if warm else self.arguments.seconds
        line = f"{load} {topic} {name}-{next(self._groups)} {seconds} {self.arguments.backlog}"
        if name not in self.clients:
            self.clients[name] = self.start(name)
        try:
            found = self.clients[name].ask(line, min(ANSWER_SECONDS, self.deadline - time.monotonic() + 5))
        except SideFailed as error:
            print(f"{name} failed at {load}: {error}", file=sys.stderr, flush=True)
            self.failed[load, name] += 1
            self.clients.pop(name).stop()
            return
        told = f"{found['rate']:11,.0f}/s {found['cpu_us']:7.1f} us"
        print(f"round {'warm' if warm else number + 1} {load:8} {name:9} {told}", file=sys.stderr, flush=True)
        if not warm:
            self.results.setdefault((load, name), []).append(found)

    def median(self, load: str, name: str, figure: str) -> float:
        """NaN where nothing was measured."""
        found = self.results.get((load, name))
        return statistics.median(one[figure] for one in found) if found else float("nan")


def table(median: Callable[[str, str, str], float], loads: list[str]) -> Iterator[str]:
    """Its lines: what is not known is a dash."""
    yield HEAD
    for load in loads:
        for name in LOADS[load]:
            rate, cost = median(load, name, "rate"), median(load, name, "cpu_us")
            if rate != rate:
                continue
            cells = (
                rate / median(load, JAVA, "rate"), rate / median(load, CPP, "rate"), cost,
                cost / median(load, JAVA, "cpu_us"),
            )  # fmt: skip
            of_java, of_cpp, each, cost_of_java = ("-" if one != one else f"{one:.2f}" for one in cells)
            yield f"{load:8} {name:10} {rate:11,.0f} {of_java:>8} {of_cpp:>7} {each:>8} {cost_of_java:>8}"


def compare(arguments: argparse.Namespace, names: list[str], root: Path) -> None:
    deadline = time.monotonic() + arguments.minutes * 60
    use_top_speed()
    classes = compiled(root) if JAVA in names else None
    broker = Side("ours", root / "broker")
    run = Run(lambda name: started(name, broker.name_server, root, classes), arguments, names, deadline)
    try:
        broker.start()
        fill(broker.name_server, arguments.backlog)
        run.rounds()
        print(f"Python {platform.python_version()} of {sys.base_prefix}")
        print("\n".join(table(run.median, arguments.only)))
    finally:
        for client in run.clients.values():
            client.stop()
        broker.stop()


def parse(arguments: list[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--backlog", type=int, default=60_000)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(LOADS))
    parser.add_argument("--sides", type=lambda text: text.split(","), default=list(SIDES))
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    return parser.parse_args(arguments)


def main() -> None:
    arguments = parse()
    absent = dict(missing_sides(arguments.sides))
    for name, problem in absent.items():
        print(f"{name} is left out: {problem}", file=sys.stderr)
    root = Path(tempfile.mkdtemp(prefix="bench-client-", dir=arguments.dir))
    try:
        compare(arguments, [name for name in arguments.sides if name not in absent], root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
