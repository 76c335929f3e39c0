"""Live queues in Spark: a batch, streams into Parquet, and the way back by the sink."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark.live.brokers import Broker
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.live.lag import total_lag
from twisted_mq.spark.live.queue_offsets import group_offsets


def live(session: SparkSession, broker: Broker, **options: object) -> DataFrame:
    return session.read.format("rocketmq").options(nameServer=broker.name_server, **options).load()  # type: ignore[arg-type]


def numbered(count: int, begin: int = 0) -> list[bytes]:
    return [b"%06d" % number for number in range(begin, begin + count)]


def drain(session: SparkSession, broker: Broker, out: Path, **options: object) -> dict[str, object]:
    """Read what there is into Parquet; the last progress."""
    source = session.readStream.format("rocketmq").options(nameServer=broker.name_server, **options).load()  # type: ignore[arg-type]
    query = (
        source.select("queueId", "queueOffset", F.col("body").cast("string").alias("text"))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "rows"))
    )
    assert query.awaitTermination(120)
    return dict(query.lastProgress or {})  # type: ignore[arg-type]


def texts(session: SparkSession, out: Path) -> list[str]:
    return sorted(row.text for row in session.read.parquet(str(out / "rows")).collect())


def test_a_batch_counts_and_groups(session: SparkSession, broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(500), 0)
    broker.send(topic, numbered(300, 500), 1)
    found = live(session, broker, topic=topic, minPartitions=5)
    assert found.count() == 800
    assert sorted(map(tuple, found.groupBy("topic", "queueId").count().collect())) == [(topic, 0, 500), (topic, 1, 300)]


def test_a_view_is_one_cut_whatever_conditions_are_pushed(session: SparkSession, broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(50), 0)
    live(session, broker, topic=topic).createOrReplaceTempView("view")
    broker.send(topic, numbered(30, 50), 1)
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition in ("", f"WHERE topic = '{topic}'", "WHERE queueId < 2"):
            assert session.sql(f"SELECT count(*) FROM view {condition}").collect() == [(50,)]
    finally:
        session.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_stream_goes_on_at_its_checkpoint_exactly_once(session: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    options = {
        "subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 150, "group": "Drain", "commitOffsets": "true",
    }  # fmt: skip
    broker.send(topic, numbered(200), 0)
    broker.send(topic, numbered(200, 200), 1)
    progress = drain(session, broker, tmp_path, **options)
    assert texts(session, tmp_path) == [body.decode() for body in numbered(400)]
    assert total_lag(progress) == 0
    broker.send(topic, numbered(100, 400), 1)
    drain(session, broker, tmp_path, **options)
    assert texts(session, tmp_path) == [body.decode() for body in numbered(500)]
    queues = [MessageQueue(topic, "broker-a", number) for number in range(2)]
    assert group_offsets(broker.cluster(), queues, "Drain") == {queues[0]: 200, queues[1]: 300}


def test_rows_go_round_by_the_sink(session: SparkSession, broker: Broker) -> None:
    source, target = broker.topic(1), broker.topic(4)
    broker.send(source, numbered(1000), 0)
    rows = live(session, broker, topic=source, minPartitions=3).select(
        "body",
        F.lit(target).alias("topic"),
        F.lit("copied").alias("tags"),
        F.col("queueOffset").cast("string").alias("keys"),
        F.map_from_arrays(F.array(F.lit("from")), F.array("topic")).alias("properties"),
    )
    rows.write.format("rocketmq").option("nameServer", broker.name_server).mode("append").save()
    queues = broker.read(target)
    found = [message for queue in queues for message in queue]
    assert sorted(message.body for message in found) == numbered(1000)
    assert all(queue == sorted(queue, key=lambda one: int(one.keys[0])) for queue in queues)
    assert {(one.tags, one.properties["from"]) for one in found} == {("copied", source)}
    assert len({one.unique_key for one in found}) == 1000


def test_a_stream_is_written_with_ids_of_query_batch_partition_and_row(
    session: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    source, target = broker.topic(1), broker.topic(2)
    broker.send(source, numbered(100), 0)
    stream = (
        session.readStream.format("rocketmq")
        .options(nameServer=broker.name_server, topic=source, startingOffsets="earliest", maxOffsetsPerTrigger=60)
        .load()
    )
    query = (
        stream.select("body")
        .writeStream.format("rocketmq")
        .options(nameServer=broker.name_server, topic=target, checkpointLocation=str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    found = [message for queue in broker.read(target) for message in queue]
    assert sorted(message.body for message in found) == numbered(100)
    prefix = str(query.id).replace("-", "")
    expected = {f"{prefix}-{batch}-0-{row}" for batch, rows in ((0, 60), (1, 40)) for row in range(rows)}
    assert {message.unique_key for message in found} == expected


def test_bad_input_is_refused_when_it_is_planned(session: SparkSession, broker: Broker) -> None:
    with pytest.raises(AnalysisException, match="unknown option, did you mean startingOffsets"):
        live(session, broker, topic="T", startingOffset="earliest")
    rows = session.createDataFrame([(b"x", 3)], "body binary, tags int")
    with pytest.raises(AnalysisException, match="column 'tags': is of type int, string is needed"):
        rows.write.format("rocketmq").options(nameServer=broker.name_server, topic="T").mode("append").save()
    with pytest.raises(AnalysisException, match="topic 'Nowhere' does not exist"):
        rows.select("body").write.format("rocketmq").options(nameServer=broker.name_server, topic="Nowhere").mode(
            "append"
        ).save()
