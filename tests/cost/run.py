"""Measures the worst turn of every request and port, and prints the table of docs/measurements: `make cost`.

All servers run in one process (tests.cost.server); strangers connect over sockets of the loopback. A case that comes near the
limit is measured again: the table has the least of its measurements, since other programs of the machine only add.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from interop.peers.process import Process
from tests.cost.cases import PAGES, Case, all_cases
from tests.soak.servers import Log

ROOT = Path(__file__).parents[2]
TURN_SECONDS = 0.05
NEAR_SECONDS = 0.035
AGAIN = 2
IDLE_SECONDS = 0.1
IDLE_SHARE = 0.05
IDLE_LOOKS = 2
"""A server that takes less of a processor, so many times, has done what it was asked for."""
PATIENCE_SECONDS = 30.0
MIB = 1 << 20
HELD_BYTES = 1 << 16


@attrs.frozen
class Cost:
    """Cost of one case: processor time of the worst turn while it arrived, and of its disconnect; bytes, and remaining counts."""

    case: Case
    worst: float
    where: str
    at_the_end: float
    round: float
    memory: int
    kept: int
    left: int

    @property
    def line(self) -> str:
        """A row of the table."""
        case = self.case
        code = "" if case.code is None else f"{case.code} {case.request}"
        figures = f"{1000 * self.worst:.1f} | {1000 * self.at_the_end:.1f} | {1000 * self.round:.0f}"
        return f"| {case.port} | {code} | {case.name} | {figures} | {self.memory / MIB:.0f} | {self.kept:,} | {self.left:,} |"


HEADING = (
    "| port | request | shape | worst turn, ms | its disconnect, ms | round, ms | memory, MiB | bytes counted | left |\n"
    "|---|---|---|---:|---:|---:|---:|---:|---:|"
)


class Servers:
    """The process of the servers."""

    def __init__(self, folder: Path) -> None:
        pipes = {"stdin": -1, "stdout": -1}
        command = [sys.executable, "-m", "tests.cost.server", str(folder / "store")]
        self.process = Process.start(
            command, folder / "servers.log", ROOT, env={**os.environ, "HOME": str(folder)}, **pipes
        )
        self.ports: dict[str, int] = json.loads(self._line())
        self.longest_collection, self.objects = 0.0, 0

    def _line(self) -> bytes:
        assert self.process.child.stdout is not None
        line: bytes = self.process.child.stdout.readline()
        if not line:
            raise RuntimeError(f"the servers ended:\n{self.process.output_tail()}")
        return line

    def ask(self, url: str = "") -> dict[str, Any]:
        """Return the measurements since the last call."""
        assert self.process.child.stdin is not None
        self.process.child.stdin.write(url.encode() + b"\n")
        self.process.child.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def note_collection(self, seconds: float, objects: int) -> None:
        """A full collection took so long, with so many objects."""
        if seconds > self.longest_collection:
            self.longest_collection, self.objects = seconds, objects

    @property
    def anonymous_bytes(self) -> int:
        """Memory that is not of files."""
        status = Path(f"/proc/{self.process.child.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) * 1024


class Measured:
    """Measurements of one case so far."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        servers.ask()
        self._before = servers.anonymous_bytes
        self.worst = self.round = 0.0
        self.where = ""
        self.memory = self.kept = 0

    async def settle(self, patience: float = PATIENCE_SECONDS) -> tuple[float, str, int]:
        """Wait until the servers have nothing to do; the worst turn meanwhile, where it was, and the bytes counted now."""
        worst, where, total, idle = 0.0, "", 0.0, 0
        clock = asyncio.get_running_loop().time
        end = clock() + patience
        while True:
            began = clock()
            found = self._servers.ask()
            if found["worst"] > worst:
                worst, where = found["worst"], found["where"]
            self.round = max(self.round, found["round"])
            self._servers.note_collection(found["collection"], found["objects"])
            self.kept = max(self.kept, found["kept"])
            self.memory = max(self.memory, self._servers.anonymous_bytes - self._before)
            idle = idle + 1 if found["total"] - total < IDLE_SHARE * IDLE_SECONDS else 0
            if idle == IDLE_LOOKS or began > end:
                return worst, where, found["kept"]
            total = found["total"]
            await asyncio.sleep(IDLE_SECONDS)


async def measure(servers: Servers, case: Case) -> Cost:
    """Connect, send, wait, disconnect, wait."""
    measured = Measured(servers)
    data = case.data()
    tasks = [asyncio.create_task(_connection(servers.ports[case.port], data)) for _ in range(case.connections)]
    await asyncio.sleep(0)
    worst, where, _ = await measured.settle()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    at_the_end, _, left = await measured.settle()
    return Cost(case, worst, where, at_the_end, measured.round, measured.memory, measured.kept, left)


async def _connection(port: int, data: bytes) -> None:
    """Send, and read until it is cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=HELD_BYTES)
    try:
        writer.write(data)
        while await reader.read(HELD_BYTES):
            pass
        await asyncio.sleep(PATIENCE_SECONDS)
    finally:
        writer.transport.abort()


async def measure_page(servers: Servers, name: str, page: bytes) -> Cost:
    """A client asks an address server that answers so."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(HELD_BYTES)
        writer.write(page)
        await asyncio.sleep(PATIENCE_SECONDS)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    measured = Measured(servers)
    before = servers.anonymous_bytes
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(None, servers.ask, f"http://127.0.0.1:{port}/")
    worst, where, left = await measured.settle()
    server.close()
    if found["worst"] > worst:
        worst, where = found["worst"], found["where"]
    memory = servers.anonymous_bytes - before
    case = Case("address server's client", name, lambda: page)
    return Cost(case, worst, where, 0.0, max(found["round"], measured.round), memory, measured.kept, left)


async def least(servers: Servers, case: Case) -> Cost:
    """Measure once, again where it is near the limit."""
    found = await measure(servers, case)
    for _ in range(AGAIN):
        if max(found.worst, found.at_the_end) < NEAR_SECONDS:
            break
        again = await measure(servers, case)
        found = min(found, again, key=lambda one: max(one.worst, one.at_the_end))
    return found


def is_long(cost: Cost) -> bool:
    """Return True if a turn takes longer than allowed."""
    return max(cost.worst, cost.at_the_end) > TURN_SECONDS


async def measure_all(servers: Servers, cases: Iterable[Case], pages: dict[str, bytes]) -> list[Cost]:
    """Measure all cases, and tell of each on standard error."""
    costs = []
    for case in cases:
        costs.append(await least(servers, case))
        _tell(costs[-1])
    for name, page in pages.items():
        costs.append(await measure_page(servers, name, page))
        _tell(costs[-1])
    return costs


def _tell(cost: Cost) -> None:
    print(f"{cost.line} {cost.where if is_long(cost) else ''}", file=sys.stderr, flush=True)


def worst_of_each(costs: Iterable[Cost]) -> list[Cost]:
    """Return the case with the longest turn for each request, or for each port if bytes are not requests."""
    found: dict[tuple[str, object], Cost] = {}
    for cost in costs:
        key = cost.case.port, cost.case.name if cost.case.code is None else cost.case.code
        known = found.get(key)
        if known is None or max(cost.worst, cost.at_the_end) > max(known.worst, known.at_the_end):
            found[key] = cost
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", help="cases of this port alone")
    parser.add_argument("--code", type=int, help="cases of this request alone")
    parser.add_argument("--name", default="", help="cases whose name has this text")
    options = parser.parse_args()
    cases = (
        case for case in all_cases()
        if options.port in (None, case.port) and options.code in (None, case.code) and options.name in case.name
    )  # fmt: skip
    pages = PAGES if options.code is None and options.port in (None, "address") else {}
    with tempfile.TemporaryDirectory(prefix="mq-cost-") as folder:
        servers = Servers(Path(folder))
        try:
            costs = asyncio.run(measure_all(servers, cases, pages))
            print(HEADING, *(cost.line for cost in worst_of_each(costs)), sep="\n")
            print(f"\nLongest full collection: {1000 * servers.longest_collection:.0f} ms, {servers.objects:,} objects")
        finally:
            servers.process.stop()
            faults = Log(servers.process.output()).faults
            print(servers.process.output_tail(), file=sys.stderr)
    if faults:
        sys.exit(f"the servers failed {len(faults)} times:\n{faults[0]}")
    long = list(filter(is_long, costs))
    sys.exit(f"{len(long)} take longer than {TURN_SECONDS} s" if long else 0)


if __name__ == "__main__":
    main()
