"""Measures the time of the console's pages with many topics, and the memory of its day of history.

.venv/bin/python -m tests.bench.bench_console [--topics 10000] [--rounds 20]

A server of its own (`mq up` with a table of topics written before its start) and a console in another process; each page is
asked for again and again over one loopback connection after the other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

from twisted.internet.defer import ensureDeferred

from interop.peers.browser import running_server
from interop.peers.console_visitor import Visitor
from interop.peers.process import wait_until
from twisted_mq.admin.figures import BrokerFigures
from twisted_mq.console.history import KEPT, History

PAGES = ("/", "/topics", "/topics?page=150", "/topics?q=9999", "/topics?kind=all", "/topic?name=many-000000", "/groups",
         "/producers", "/search?q=many-0099", "/dead-letters", "/waiting", "/access")  # fmt: skip


def pages(topics: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = [f"many-{number:06d}" for number in range(topics)]
        table = {one: {"topicName": one, "readQueueNums": 8, "writeQueueNums": 8, "perm": 6} for one in names}
        config = Path(folder) / "config"
        config.mkdir()
        (config / "topics.json").write_text(json.dumps({"topicConfigTable": table, "dataVersion": {}}))
        with running_server(Path(folder)) as address:
            visitor = Visitor(address)
            wait_until(lambda: names[-1] in visitor.page("/search", q=names[-1]), "topics are registered")
            print(f"{topics} topics, {rounds} rounds, ms: median, highest")
            for path in PAGES:
                took = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    visitor.page(path)
                    took.append((time.perf_counter() - began) * 1000)
                print(f"{path:28} {statistics.median(took):8.1f} {max(took):8.1f}")


def memory() -> None:
    def told() -> list[BrokerFigures]:
        text = json.dumps({"cluster": "DefaultCluster", "name": "broker-a"})  # as each answer brings names of its own
        names = json.loads(text)
        figures = {"putTps": "1234.5 1 1", "getTransferredTps": "1234.5 1 1", "commitLogDiskRatio": "0.25"}
        return [BrokerFigures(names["cluster"], names["name"], 0, "127.0.0.1:10911", figures)]

    async def ask() -> list[BrokerFigures]:
        return told()

    history = History(ask, lambda: 0)
    tracemalloc.start()
    for _ in range(KEPT):
        ensureDeferred(history.take())
    size, _ = tracemalloc.get_traced_memory()
    print(f"a day of one broker: {size / 1024:.0f} KiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    memory()
    pages(given.topics, given.rounds)


if __name__ == "__main__":
    main()
