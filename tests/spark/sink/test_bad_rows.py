"""Rows that are no messages: what a stream stores beside them, how often, and where they are put aside."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark.live.brokers import Broker
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.sink.options import sink_options

ROWS = 200
BAD = b"q1-150"


def bodies(queue: int) -> list[bytes]:
    return [b"q%d-%d" % (queue, number) for number in range(ROWS)]


def written(session: SparkSession, broker: Broker, source: str, target: str, checkpoint: Path, **options: str) -> None:
    """Copy a topic of three queues by one batch of a stream; the body BAD is empty. Each queue is a partition."""
    rows = session.readStream.format("rocketmq").options(
        nameServer=broker.name_server, topic=source, startingOffsets="earliest"
    )
    body = F.when(F.col("body") == F.lit(BAD), F.lit(b"")).otherwise(F.col("body"))
    query = (
        rows.load()
        .select(body.alias("body"))
        .writeStream.format("rocketmq")
        .options(nameServer=broker.name_server, topic=target, checkpointLocation=str(checkpoint), **options)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


def stored(broker: Broker, topic: str) -> list[bytes]:
    return sorted(message.body for queue in broker.read(topic) for message in queue)


def test_a_bad_row_of_a_stream_stores_nothing_again_at_each_restart(
    session: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    source, target = broker.topic(3), broker.topic(4)
    for queue in range(3):
        broker.send(source, bodies(queue), queue)
    for _ in range(2):
        with pytest.raises(
            StreamingQueryException, match=r"row 150 of partition 1: body is empty.*2 partitions are stored"
        ):
            written(session, broker, source, target, tmp_path / "checkpoint")
        assert stored(broker, target) == sorted(bodies(0) + bodies(2))
    aside = tmp_path / "aside"
    written(session, broker, source, target, tmp_path / "checkpoint", onBadRow="quarantine", quarantine=str(aside))
    assert stored(broker, target) == sorted({*bodies(0), *bodies(1), *bodies(2)} - {BAD})
    (row,) = session.read.parquet(str(aside)).collect()
    assert (row.batch, row.partition, row.row, row.reason, bytes(row.body)) == (0, 1, 150, "body is empty", b"")


def test_bad_rows_of_a_batch_are_left_out_by_option(session: SparkSession, broker: Broker) -> None:
    target = broker.topic(1)
    rows = session.createDataFrame(
        [(b"a", ["k"]), (b"b", ["k", None]), (b"c", ["l"])], "body binary, keys array<string>"
    )
    rows.coalesce(1).write.format("rocketmq").options(
        nameServer=broker.name_server, topic=target, onBadRow="skip"
    ).mode("append").save()
    assert stored(broker, target) == [b"a", b"c"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"onBadRow": "ignore"}, "fail, skip, quarantine are known"),
        ({"onBadRow": "quarantine"}, "are needed together"),
        ({"quarantine": "/tmp"}, "are needed together"),
    ],
)
def test_options_that_say_nothing_clear_are_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(WrongOption, match=reason):
        sink_options({"nameServer": "a:1", **options})
