"""Reads beside a live broker: each an exact prefix of acknowledged messages, without false damage.

    .venv/bin/python -m tests.spark_proof.reads [--seconds 600] [--reads 500] [--rate 400] [--store DIR] [--direct | --mixed]

A broker in a process of its own takes batches of 1 to 8 messages of 0 to 600 bytes in two queues, into log files of 16 MiB.
Meanwhile Spark reads its store again and again, in turns as one writes it, in many tasks, and through the consume queues, with
failOnDamage=true. For each queue a read must have all messages acknowledged before its start, only sent messages, with unchanged
bodies, in order. The places of its rows must be the first ones of the last read, which comes when all is written.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
import tempfile
import threading
import time

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tests.spark.live.brokers import Broker
from tests.support.embedded import EmbeddedProcess
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.columns.schema import arrow_schema
from twisted_mq.spark.session import local_session
from twisted_mq.spark.sink.columns import Outgoing
from twisted_mq.spark.sink.frames import Frame
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.planning import log_ends
from twisted_mq.spark.source.store_reader import StoreReader

TOPIC = "Live"
QUEUES = (0, 1)
LOG_FILE_BYTES = 16 << 20
KINDS: tuple[dict[str, str], ...] = ({}, {"maxPartitionBytes": "1m"}, {"through": "queues"})
COLUMNS = "queueId,queueOffset,physicalOffset,crcOk,body"


def body_of(queue_id: int, number: int) -> bytes:
    """The message of a queue offset."""
    return b"%d-%d-" % (queue_id, number) + b"x" * (number * 37 % 600)


@attrs.define
class Sender:
    """Writes one queue, a batch after the other, and counts what was acknowledged."""

    broker: Broker
    queue_id: int
    rate: float
    sent: int = 0
    acknowledged: int = 0
    stopped: threading.Event = attrs.field(factory=threading.Event)

    def run(self) -> None:
        cluster = self.broker.cluster()
        connection = cluster.connection(self.broker.address)
        queue = MessageQueue(TOPIC, self.broker.name, self.queue_id)
        began = time.monotonic()
        for round_ in itertools.count():
            if self.stopped.is_set():
                break
            frame = Frame()
            for _ in range(1 + round_ % 8):
                frame.add(Outgoing(self.sent, TOPIC, body_of(self.queue_id, self.sent), b"TAGS\x01a\x02", None, False))
                self.sent += 1
            answer = connection.call(frame.request(queue, "PROOF", int(time.time() * 1000)))
            if answer.code:
                raise SystemExit(f"a send was refused: {answer.code} {answer.remark}")
            self.acknowledged = self.sent
            self.stopped.wait(max(0.0, began + self.sent / self.rate - time.monotonic()))
        cluster.close()


@attrs.define
class Checker:
    """Compares each read with what was sent."""

    senders: list[Sender]
    bodies: dict[int, list[bytes]] = attrs.field(factory=lambda: {queue: [] for queue in QUEUES})
    reads: list[tuple[int, bytes]] = attrs.field(factory=list)
    inside: int = 0
    """Number of them inside Spark."""
    last: np.ndarray | None = None

    def check(self, rows: pa.Table, before: list[int]) -> None:
        """`before`: what each sender had acknowledged when the read began. Raises AssertionError."""
        assert pc.all(rows["crcOk"]).as_py() in (True, None), "a body with a wrong CRC"
        for sender, least in zip(self.senders, before, strict=True):
            queue = sender.queue_id
            found = rows.filter(pc.equal(rows["queueId"], queue)).sort_by("queueOffset")
            assert least <= len(found) <= sender.sent, f"queue {queue}: {len(found)} rows, {least} acknowledged before"
            known = self.bodies[queue]
            known += (body_of(queue, number) for number in range(len(known), len(found)))
            assert found["queueOffset"].to_pylist() == list(range(len(found))), f"queue {queue}: other queue offsets"
            bodies = found["body"].combine_chunks() if len(found) else pa.array([], pa.binary())
            assert bodies.cast(pa.binary()).equals(pa.array(known[: len(found)], pa.binary())), (
                f"queue {queue}: other bodies"
            )
        self.reads.append((len(rows), digest(places(rows))))

    def check_prefixes(self) -> None:
        """Check that all reads are prefixes of the last one. Raises AssertionError."""
        assert self.last is not None
        for count, found in self.reads:
            assert digest(self.last[:count]) == found, f"a read of {count} rows was no prefix of the log"


def places(rows: pa.Table) -> np.ndarray:
    """The physical offsets in order."""
    return np.sort(rows["physicalOffset"].to_numpy())


def digest(offsets: np.ndarray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(offsets, np.int64).tobytes()).digest()


def read(session: SparkSession | None, store: str, options: dict[str, str]) -> pa.Table:
    """By Spark, or without it what its driver and its tasks would read, here one after the other."""
    given = {"topic": TOPIC, "columns": COLUMNS, "failOnDamage": "true", **options}
    if session is not None:
        return session.read.format("rocketmq").options(**given).load(store).toArrow()
    said = read_options({**given, "path": store})
    reader = StoreReader(said, said.columns, log_ends(said))
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    return pa.Table.from_batches(batches, arrow_schema(said.columns))


def prove(
    session: SparkSession | None,
    server: EmbeddedProcess,
    seconds: float,
    reads: int,
    rate: float,
    *,
    mixed: bool = False,
) -> str:
    """Raises AssertionError where a read is not what it should be. `mixed`: a read that is late is made without Spark."""
    broker = Broker(server.name_server, server.broker)
    broker.topic(len(QUEUES), TOPIC)
    senders = [Sender(broker, queue, rate / len(QUEUES)) for queue in QUEUES]
    threads = [threading.Thread(target=sender.run, daemon=True) for sender in senders]
    checker, began = Checker(senders), time.monotonic()
    for thread in threads:
        thread.start()
    try:
        while not all(sender.acknowledged for sender in senders):
            time.sleep(0.01)
        kinds = {used: itertools.cycle(KINDS) for used in (session, None)}
        while True:
            late = began + seconds * (len(checker.reads) + 1) / reads < time.monotonic()
            used = None if mixed and late else session
            before = [sender.acknowledged for sender in senders]
            checker.check(read(used, server.store, next(kinds[used])), before)
            checker.inside += used is not None
            print(f"\r{len(checker.reads)} reads", end="", file=sys.stderr, flush=True)
            passed = time.monotonic() - began
            if len(checker.reads) >= reads and passed >= seconds:
                break
            time.sleep(max(0.0, seconds * len(checker.reads) / reads - passed))
    finally:
        for sender in senders:
            sender.stopped.set()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "a sender hangs"
    last = read(session, server.store, {})
    checker.check(last, [sender.acknowledged for sender in senders])
    checker.last = places(last)
    checker.check_prefixes()
    size = int(checker.last[-1])
    grew = sum(one < two for (one, _), (two, _) in itertools.pairwise(checker.reads))
    return (
        f"{len(checker.reads)} reads in {passed:.0f} s, {checker.inside} inside Spark, {grew} of them longer than the one "
        f"before, the last of {len(last):,} rows in {size / 1e6:.0f} MB of log: each a prefix of what was acknowledged, no damage"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--reads", type=int, default=500, help="at least so many")
    parser.add_argument("--rate", type=float, default=400, help="messages a second")
    parser.add_argument("--store", help="where the store is made for the time of the run")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--direct", action="store_true", help="in this process, by what Spark's driver and tasks call")
    how.add_argument("--mixed", action="store_true", help="inside Spark, and directly where one would come late")
    arguments = parser.parse_args()
    session = None if arguments.direct else local_session("reads", 2)
    with (
        tempfile.TemporaryDirectory(dir=arguments.store) as store,
        EmbeddedProcess(store, options=(f"mapped_file_size_commit_log={LOG_FILE_BYTES}",)) as server,
    ):
        print(prove(session, server, arguments.seconds, arguments.reads, arguments.rate, mixed=arguments.mixed))
    if session is not None:
        session.stop()


if __name__ == "__main__":
    main()
