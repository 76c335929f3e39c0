"""kill -9 of `mq spark export --follow --compact`, with its Java and its workers, again and again while a broker stores messages:

python -m tests.spark_proof.export_kills --kills 50 --format delta

Each export is killed within a few seconds after its first task began: while it writes, moves files, commits or merges. After
the last kill one more export runs to its end. Then the table must have what the queues hold, each message once.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import attrs

from interop.peers.process import PeerFailed, Process, wait_until
from tests.spark.commands.test_export import READERS
from tests.spark_proof.kills import Outcome
from tests.spark_proof.load import PATIENCE_SECONDS, QUEUES, started_servers
from tests.spark_proof.processes import ROOT, Driver
from tests.spark_proof.producer import Producer

PER_SECOND = 200.0
LONGEST_SECONDS = 6.0
"""Longest time from an export's first task to its kill."""


@attrs.define
class Export(Driver):
    """`mq spark export`, in place of a driver program."""

    command: list[str] = attrs.field(factory=list)

    def start(self) -> None:
        self._process = Process.start(self.command, self.log, ROOT)

    @property
    def is_at_work(self) -> bool:
        """Return True if it was started and has not ended."""
        return self._process is not None and self.is_running


def export(directory: Path, store: Path, format: str, seed: int, *options: str) -> Export:
    command = [
        str(Path(sys.executable).with_name("mq")), "spark", "export", str(store), "--out", str(directory / "out"),
        "--format", format, "--slice-size", "0", "--compact", *options,
    ]  # fmt: skip
    return Export("export", {}, directory / "export.log", random.Random(seed), command=command)


def run(directory: Path, kills: int, seed: int, format: str, seconds: float = float("inf")) -> Outcome:
    """No kill begins after so many seconds. Raises PeerFailed where an export ends by itself."""
    began = time.monotonic()
    servers, broker = started_servers(directory / "servers")
    producer = Producer(servers.name_server, servers.broker, broker.topic(QUEUES), QUEUES, PER_SECOND)
    servers.wait_route(producer.topic)
    following = export(directory, servers.store, format, seed, "--follow", "--seconds", "0.2")
    try:
        producer.start()
        done = 0
        while done < kills and time.monotonic() < began + seconds:
            _kill(following)
            done += 1
        producer.stop()
        queues = broker.read(producer.topic)
        last = export(directory, servers.store, format, seed)
        last.start()
        if last.process.child.wait(PATIENCE_SECONDS):
            raise PeerFailed(f"the last export failed:\n{last.process.output_tail()}")
    finally:
        producer.stop()
        if following.is_at_work:
            following.kill()
        servers.stop()
    return Outcome(
        producer.acknowledged,
        producer.unknown,
        {(one.queue_id, one.queue_offset): one.body.decode() for messages in queues for one in messages},
        _rows(directory / "out", format, producer.topic),
        Counter(driver=done),
        seconds=time.monotonic() - began,
    )


def _kill(following: Export) -> None:
    """Kill the export at any moment after its first task began."""
    following.start()
    began = time.monotonic()

    def has_task() -> bool:
        following.check()
        return bool(following.workers())

    wait_until(has_task, lambda: f"a task runs\n{following.process.output_tail()}", PATIENCE_SECONDS)
    time.sleep(following.random.uniform(0, LONGEST_SECONDS))
    following.check()
    following.kill()
    print(f"{time.monotonic() - began:.1f} s", end=", ", file=sys.stderr, flush=True)


def _rows(out: Path, format: str, topic: str) -> list[tuple[tuple[int, int], str]]:
    """Return the rows as a library of the format reads them."""
    found = READERS[format](str(out)).select(["topic", "queueId", "queueOffset", "body"]).to_pylist()
    return [((row["queueId"], row["queueOffset"]), row["body"].decode()) for row in found if str(row["topic"]) == topic]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(READERS), default="parquet")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no kill begins after so many seconds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-proof-") as directory:
        outcome = run(Path(directory), given.kills, given.seed, given.format, given.seconds)
    print(f"\n{given.format}: {outcome.summary()}")
    return bool(outcome.broken_promises())


if __name__ == "__main__":
    sys.exit(main())
