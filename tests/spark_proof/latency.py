"""From send to row: `python -m tests.spark_proof.latency --seconds 60`.

A message's time ends when the batch that writes it into Parquet is done. The first batches, until Java is warm, do not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.spark_proof.driver import PROGRESS
from tests.spark_proof.load import StreamUnderLoad
from tests.spark_proof.producer import Place
from twisted_mq.spark.live.offset_maps import OffsetMap, flat

PER_SECOND = 500.0
WARM_SECONDS = 30.0
GOALS_MS = {50: 1000.0, 99: 2000.0}


def times_ms(sent_ms: Mapping[Place, float], batches: Iterable[tuple[OffsetMap, float]]) -> list[float]:
    """From send to row of each message that a batch holds; batches are (end offsets, when it was done) in their order."""
    found, begins = [], None
    for tree, done_ms in batches:
        ends = {queue.queue_id: offset for queue, offset in flat(tree).items()}
        if begins is not None:
            places = ((queue, n) for queue, end in ends.items() for n in range(begins.get(queue, 0), end))
            found += [done_ms - sent_ms[place] for place in places if place in sent_ms]
        begins = ends
    return found


def run(directory: Path, seconds: float) -> list[float]:
    """The times of all messages after the first WARM_SECONDS, in ms."""
    with StreamUnderLoad(directory, 1, PER_SECOND) as load:
        load.wait_batch(0)
        time.sleep(WARM_SECONDS)
        warm_ms = time.time() * 1000
        time.sleep(seconds)
        lines = [json.loads(line) for line in (directory / PROGRESS).read_text().splitlines()]
    return times_ms(load.producer.sent_ms, ((ends, done) for _, ends, done in lines if done > warm_ms))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-proof-") as directory:
        times = run(Path(directory), given.seconds)
    cuts = statistics.quantiles(times, n=100)
    told = ", ".join(f"p{part} {cuts[part - 1]:.0f} ms (goal: {goal:.0f})" for part, goal in GOALS_MS.items())
    print(f"from send to row: {told}; {len(times)} messages, {PER_SECOND:.0f} a second")
    return any(cuts[part - 1] > goal for part, goal in GOALS_MS.items())


if __name__ == "__main__":
    sys.exit(main())
