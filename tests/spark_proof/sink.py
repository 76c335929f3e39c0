"""Tasks of the sink killed with kill -9, and nothing lost: `python -m tests.spark_proof.sink --kills 50`.

Batches of numbered rows are written while Python workers die, each after messages came in since the last one died, so that
tasks have sent some of their rows. Every row has to be in the topic then, as Apache's Java client
reads it; rows that a task sent twice have the id of the first time.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from interop.peers.clients import Clients, JavaPeer, unique
from tests.spark.live.brokers import Broker
from tests.spark_proof.load import PATIENCE_SECONDS, QUEUES, started_servers
from tests.spark_proof.processes import Driver
from twisted_mq.spark.live.queue_offsets import next_offsets

ROWS, TASKS = 10_000, 40
SECONDS_A_ROW = 0.004
PAUSES_SECONDS = (0.05, 0.4)
MOST_TRIES = 1000
BATCH = "10"
"""Rows of a send: a task that dies has sent some of its rows."""


@attrs.define
class Outcome:
    """Results of a run: each message that Java read as (body, id)."""

    rows: int
    found: list[tuple[str, str]]
    kills: int = 0
    seconds: float = 0.0

    def broken_promises(self) -> list[str]:
        """Return violated promises."""
        lost = {str(number) for number in range(self.rows)} - {body for body, _ in self.found}
        of_two_ids = len(set(self.found)) - len({body for body, _ in self.found})
        problems = [f"{len(lost)} rows lost: {sorted(lost)[:5]}"] if lost else []
        return problems + ([f"{of_two_ids} rows twice under another id"] if of_two_ids else [])

    def summary(self) -> str:
        again = len(self.found) - len(set(self.found))
        return (
            f"kills: {self.kills} of tasks that write, in {self.seconds:.0f} s; {self.rows} rows, {len(self.found)} messages "
            f"read by Apache's Java client, {again} of them sent again under the same id; "
            f"{'; '.join(self.broken_promises()) or 'none lost'}"
        )


def run(directory: Path, kills: int, seed: int) -> Outcome:
    """Writes batch after batch until so many workers were killed."""
    servers, broker = started_servers(directory / "servers")
    try:
        topic = broker.topic(QUEUES)
        servers.wait_route(topic)
        began, killed, written = time.monotonic(), 0, 0
        options = {"nameServer": servers.name_server, "topic": topic, "batchMessages": BATCH}
        paces = {"tasks": TASKS, "seconds_a_row": SECONDS_A_ROW, "tries": MOST_TRIES}
        while killed < kills:
            spec = {"options": options, "first": written, "rows": ROWS, **paces}
            driver = Driver("sink", spec, directory / "driver.log", random.Random(seed + written))
            killed += _written_under_kills(driver, kills - killed, lambda: _stored(broker, topic))
            written += ROWS
        seconds = time.monotonic() - began
        count = sum(map(len, broker.read(topic)))
        return Outcome(written, _read_by_java(directory, servers.name_server, topic, count), killed, seconds)
    finally:
        servers.stop()


def _stored(broker: Broker, topic: str) -> int:
    """Return the number of messages of the topic."""
    cluster = broker.cluster()
    found = sum(next_offsets(cluster, cluster.readable_queues(topic)).values())
    cluster.close()
    return found


def _written_under_kills(driver: Driver, most: int, stored: Callable[[], int]) -> int:
    """Kill up to `most` workers until all rows of a batch are written; return their number. Raises PeerFailed."""
    killed, seen = 0, stored()
    driver.start()
    try:
        while driver.is_running:
            time.sleep(driver.random.uniform(*PAUSES_SECONDS))
            if killed < most and stored() > seen and driver.kill_worker():
                killed, seen = killed + 1, stored()
                print(".", end="", file=sys.stderr, flush=True)
        if driver.process.child.returncode:
            driver.check()
    finally:
        if driver.is_running:
            driver.kill()
    return killed


def _read_by_java(directory: Path, name_server: str, topic: str, count: int) -> list[tuple[str, str]]:
    java = JavaPeer(directory)
    clients = Clients(java, name_server)
    try:
        messages = clients.push_consumer(unique("proof"), topic).wait(
            lambda taken: len(taken) >= count, PATIENCE_SECONDS
        )
        return [(message["body"], message["msg_id"]) for message in messages]
    finally:
        clients.stop()
        java.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-proof-") as directory:
        outcome = run(Path(directory), given.kills, given.seed)
    print(f"\n{outcome.summary()}")
    return bool(outcome.broken_promises())


if __name__ == "__main__":
    sys.exit(main())
