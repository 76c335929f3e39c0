"""kill -9 of driver, worker and broker in turns, while a stream writes a topic into Parquet:

python -m tests.spark_proof.kills --kills 200

A producer sends meanwhile. Each message is sent once, so what got no answer may be there or not; what was acknowledged must
be. After the last kill the rows have to be what the queues hold, and the acknowledged ones among them, each once. With
`--backfill` the stream reads the broker's own files before it asks the broker. `--victims worker broker` leaves out the
driver, which takes the longest to start again.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from interop.peers.process import wait_until
from tests.spark_proof.driver import FAILED, ROWS
from tests.spark_proof.load import StreamUnderLoad
from tests.spark_proof.producer import Place
from twisted_mq.spark.session import local_session

VICTIMS = ("driver", "worker", "broker")
PER_SECOND = 200.0
MOST_A_BATCH = 20_000
LONGEST_PAUSE_SECONDS = 1.0


@attrs.define
class Outcome:
    """Results of a run: texts by their place, and all rows."""

    acknowledged: dict[Place, str]
    unknown: set[str]
    queued: dict[Place, str]
    rows: list[tuple[Place, str]]
    kills: Counter[str] = attrs.field(factory=Counter)
    batches: int = 0
    failures: int = 0
    seconds: float = 0.0

    def broken_promises(self) -> list[str]:
        """Return violated promises."""
        rows = dict(self.rows)
        strange = set(self.queued.values()) - set(self.acknowledged.values()) - self.unknown
        found = {
            "acknowledged and not in the rows": sorted(self.acknowledged.items() - rows.items()),
            "in the rows twice": sorted(place for place, times in self._counts().items() if times > 1),
            "in the rows and not in the queues": sorted(rows.items() - self.queued.items()),
            "in the queues and not in the rows": sorted(self.queued.items() - rows.items()),
            "in the queues and never sent": sorted(strange),
        }
        return [f"{len(those)} {what}: {those[:5]}" for what, those in found.items() if those]

    def _counts(self) -> Counter[Place]:
        return Counter(place for place, _ in self.rows)

    def summary(self) -> str:
        kills = ", ".join(f"{self.kills[victim]} of the {victim}" for victim in VICTIMS)
        return (
            f"kills: {kills}, in {self.seconds:.0f} s; {len(self.acknowledged)} messages acknowledged, {len(self.unknown)} "
            f"without an answer; {len(self.rows)} rows in {self.batches} batches, {self.failures} queries started again; "
            f"{'; '.join(self.broken_promises()) or 'none lost, none twice'}"
        )


def run(directory: Path, kills: int, seed: int, *, victims: Sequence[str] = VICTIMS, backfill: bool = False) -> Outcome:
    """Raises PeerFailed where the stream does not go on after a kill."""
    began = time.monotonic()
    options = {"maxOffsetsPerTrigger": str(MOST_A_BATCH)}
    if backfill:
        options |= {"backfill": str(directory / "servers" / "store"), "brokerName": "broker-a"}
    with StreamUnderLoad(directory, seed, PER_SECOND, **options) as load:
        load.wait_batch(-1)
        killed = [_kill(load, victim) for victim in itertools.islice(itertools.cycle(victims), kills)]
        load.producer.stop()
        queues = load.broker.read(load.topic)
        load.wait_read([messages[-1].queue_offset + 1 for messages in queues])
    return Outcome(
        load.producer.acknowledged,
        load.producer.unknown,
        {(one.queue_id, one.queue_offset): one.body.decode() for messages in queues for one in messages},
        _rows(directory),
        Counter(killed),
        load.last_batch() + 1,
        load.driver.log.read_text(errors="replace").count(FAILED),
        time.monotonic() - began,
    )


def _kill(load: StreamUnderLoad, victim: str) -> str:
    """Somewhere in a batch; returns when one is done that began afterwards."""
    time.sleep(load.random.uniform(0, LONGEST_PAUSE_SECONDS))
    before, began = load.last_batch(), time.monotonic()
    _KILLS[victim](load)
    load.wait_batch(before + 1)  # the one that was under way may have been done all the same
    print(f"{victim} {time.monotonic() - began:.1f} s", end=", ", file=sys.stderr, flush=True)
    return victim


def _kill_driver(load: StreamUnderLoad) -> None:
    load.driver.kill()
    load.driver.start()


def _kill_worker(load: StreamUnderLoad) -> None:
    wait_until(lambda: load.driver.kill_worker(planners=True), "a worker runs")


def _kill_broker(load: StreamUnderLoad) -> None:
    load.servers.kill_broker()
    load.servers.start_broker()


_KILLS = dict(zip(VICTIMS, (_kill_driver, _kill_worker, _kill_broker), strict=True))


def _rows(directory: Path) -> list[tuple[Place, str]]:
    """As Spark reads them: by the sink's own list of files that count."""
    session = local_session("judge", cores=2)
    found = session.read.parquet(str(directory / ROWS)).collect()
    return [((row.queueId, row.queueOffset), row.text) for row in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=VICTIMS, help="killed in turns")
    parser.add_argument("--backfill", action="store_true", help="the stream reads the broker's files first")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-proof-") as directory:
        outcome = run(Path(directory), given.kills, given.seed, victims=given.victims, backfill=given.backfill)
    print(f"\n{outcome.summary()}")
    return bool(outcome.broken_promises())


if __name__ == "__main__":
    sys.exit(main())
