"""Rows that one task reads in a second of one queue, from the broker and from files: `python -m tests.spark_proof.pulls`.

The task's own work, as Spark calls it: pulls, and Arrow batches of what they brought. Spark's transport of these is not in it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import attrs

from interop.peers.process import Process
from tests.soak.servers import processor_seconds
from tests.spark.live.brokers import Broker
from tests.spark_proof.load import started_servers
from twisted_mq.spark.columns.schema import DEFAULT_COLUMNS
from twisted_mq.spark.live.batch_reader import LiveBatchReader
from twisted_mq.spark.live.options import live_options
from twisted_mq.spark.source.held_queues import HeldQueues
from twisted_mq.spark.source.stores import stores_named

ROWS = 300_000
BODY = b"x" * 128
ROUNDS = 3
GOAL = 100_000
SMALLEST_SECONDS = 0.01
"""Resolution of the system's processor times."""
FEW = ("queueId", "queueOffset", "body")


@attrs.frozen
class Rate:
    """Rows a second of the clock, and of the processor time of task and broker: where cores are free, the least counts."""

    by_clock: float
    by_task: float
    by_broker: float

    def __str__(self) -> str:
        return f"{self.by_clock:,.0f} (of the task's processor time {self.by_task:,.0f}, of the broker's {self.by_broker:,.0f})"


def rate(reader: LiveBatchReader, broker: Process) -> Rate:
    """The better of ROUNDS reads of all there is. Raises ValueError where rows are missing."""
    rates = []
    for _ in range(ROUNDS):
        (split,) = reader.partitions()
        began, used, of_broker = time.perf_counter(), time.process_time(), processor_seconds(broker)
        rows = sum(batch.num_rows for batch in reader.read(split))
        of_broker = max(processor_seconds(broker) - of_broker, SMALLEST_SECONDS)
        rates.append(Rate(rows / (time.perf_counter() - began), rows / (time.process_time() - used), rows / of_broker))
        if rows != split.stretch.end:
            raise ValueError(f"{rows} rows of {split.stretch.end}")
    return max(rates, key=lambda one: one.by_clock)


def reader_of(broker: Broker, topic: str, columns: tuple[str, ...], **options: str) -> LiveBatchReader:
    known = live_options({"nameServer": broker.name_server, "topic": topic, **options})
    held = HeldQueues(stores_named(known.stores, known.broker_names)) if known.stores else None
    return LiveBatchReader(known, columns, held)


def run(directory: Path, rows: int) -> dict[str, Rate]:
    """Rows a second, by what was read how."""
    servers, broker = started_servers(directory / "servers")
    try:
        topic = broker.topic(1)
        servers.wait_route(topic)
        broker.send(topic, [BODY] * rows)
        files = {"backfill": broker.store, "brokerName": broker.name}
        kinds = {"default columns": DEFAULT_COLUMNS, "three columns": FEW}
        return {
            f"{words}, {source}": rate(reader_of(broker, topic, columns, **options), servers.broker_process)
            for words, columns in kinds.items()
            for source, options in (("broker", {}), ("files", files))
        }
    finally:
        servers.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-proof-") as directory:
        rates = run(Path(directory), given.rows)
    told = "; ".join(f"{what}: {found}" for what, found in rates.items())
    print(f"rows a second of one task (goal: {GOAL:,}), {given.rows:,} messages of {len(BODY)} bytes: {told}")
    return rates["default columns, broker"].by_clock < GOAL


if __name__ == "__main__":
    sys.exit(main())
