"""Topics read from files first and from their brokers then: each message once, wherever the one ends and the other begins."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from interop.peers.process import free_port, wait_until
from tests.spark.live.brokers import Broker
from tests.spark.live.test_live_spark import drain, live, texts
from tests.spark.live.test_readers import nexts, numbered, offsets, rows
from tests.support.embedded import EmbeddedProcess
from twisted_mq.protocol.messages.message import Message
from twisted_mq.spark.errors import NoCommitLog, WrongOption
from twisted_mq.spark.live.batch_reader import LiveBatchReader
from twisted_mq.spark.live.errors import OffsetsLost
from twisted_mq.spark.live.offset_maps import OffsetMap, flat
from twisted_mq.spark.live.options import LiveOptions, live_options
from twisted_mq.spark.live.queue_offsets import next_offsets
from twisted_mq.spark.live.stream_reader import LiveStreamReader
from twisted_mq.spark.source.held_queues import HeldQueues
from twisted_mq.spark.source.stores import stores_named

COLUMNS = ["queueId", "queueOffset", "body"]


def planned(broker: Broker, store: Path | str, columns: list[str], **options: object) -> tuple[
    LiveOptions, list[str], HeldQueues
]:  # fmt: skip
    given = {"nameServer": broker.name_server, "backfill": str(store), "brokerName": "broker-a"}
    known = live_options({**given, **{name: str(value) for name, value in options.items()}})
    return known, columns, HeldQueues(stores_named(known.stores, known.broker_names))


def batch(broker: Broker, store: Path | str, columns: list[str] = COLUMNS, **options: object) -> LiveBatchReader:
    return LiveBatchReader(*planned(broker, store, columns, **options))


def stream(broker: Broker, store: Path | str, **options: object) -> LiveStreamReader:
    return LiveStreamReader(*planned(broker, store, COLUMNS, **options))


def copied(broker: Broker, topic: str, count: int, path: Path) -> Path:
    """Copy a store like a slave or a backup, after these messages are in the queues: a broker acknowledges before it
    dispatches."""
    cluster = broker.cluster()
    queues = cluster.readable_queues(topic)
    wait_until(
        lambda: sum(next_offsets(cluster, queues).values()) == count, f"{count} messages in the queues of {topic}"
    )
    cluster.close()
    return Path(shutil.copytree(broker.store, path))


def expected(count: int) -> list[tuple[int, int, bytes]]:
    return [(0, number, body) for number, body in enumerate(numbered(count))]


def test_files_give_what_they_hold_and_the_broker_the_rest(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(300))
    store = copied(broker, topic, 300, tmp_path / "slave")
    broker.send(topic, numbered(200, 300))
    reader = batch(broker, store, ["queueOffset", "body", "store", "brokerName"], topic=topic, minPartitions=3)
    splits = reader.partitions()
    assert len(splits) == 3
    assert rows(reader, splits) == [
        (number, body, str(store) if number < 300 else None, "broker-a") for number, body in enumerate(numbered(500))
    ]


def test_files_of_a_broker_that_writes_are_read_in_its_place(tmp_path: Path) -> None:
    with EmbeddedProcess(str(tmp_path / "store"), free_port(), free_port()) as server:
        broker = Broker(server.name_server, server.broker, store=server.store)
        topic = broker.topic(2)
        broker.send(topic, numbered(500), 1)
        reader = batch(broker, broker.store, topic=topic)
        splits = reader.partitions()
        server.kill()  # so nobody can have been asked
        assert rows(reader, splits) == [(1, number, body) for number, body in enumerate(numbered(500))]


def read_on(reader: LiveStreamReader, start: OffsetMap, until: int) -> tuple[OffsetMap, list[tuple[object, ...]]]:
    """(end, rows) of one batch after the other, until one ends at an offset of the only queue or behind it."""
    limit, found = reader.getDefaultReadLimit(), []
    while next(iter(flat(start).values())) < until:
        end = reader.latestOffset(start, limit)
        found += rows(reader, reader.partitions(start, end))
        start = end
    reader.stop()
    return start, found


def test_no_gap_and_no_repeat_while_a_producer_writes_and_the_store_vanishes(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(1000))
    store = copied(broker, topic, 1000, tmp_path / "copy")
    writer = threading.Thread(target=broker.send, args=(topic, numbered(1000, 1000)))
    writer.start()
    options = {"topic": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 170}
    begun = stream(broker, store, **options).initialOffset()
    assert begun == offsets(topic, 0)
    # each time nothing is left but the checkpoint's offsets, as after a kill
    middle, first = read_on(stream(broker, store, **options), begun, 400)
    behind, second = read_on(stream(broker, store, **options), middle, 1300)
    shutil.rmtree(store)
    _, third = read_on(stream(broker, store, **options), behind, 2000)
    writer.join()
    assert first + second + third == expected(2000)


def test_a_batch_that_is_run_again_after_the_store_is_gone_has_the_same_rows(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(100))
    store = copied(broker, topic, 100, tmp_path / "copy")
    reader = stream(broker, store, topic=topic)
    splits = reader.partitions(offsets(topic, 20), offsets(topic, 90))
    before = rows(reader, splits)
    shutil.rmtree(store)
    assert rows(reader, splits) == before == expected(100)[20:90]


def test_available_now_ends_where_the_broker_did(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(10))
    store = copied(broker, topic, 10, tmp_path / "copy")
    broker.send(topic, numbered(10, 10))
    reader = stream(broker, store, topic=topic, startingOffsets="earliest")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    broker.send(topic, numbered(10, 20))
    end = reader.latestOffset(start, ReadAllAvailable())
    assert (nexts(end), rows(reader, reader.partitions(start, end))) == (offsets(topic, 20), expected(20))
    reader.stop()


def test_bytes_of_a_batch_are_counted_in_files(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(100))
    store = copied(broker, topic, 100, tmp_path / "copy")
    (size,) = {message.store_size for message in broker.read(topic)[0]}
    reader = stream(broker, store, topic=topic, startingOffsets="earliest", maxBytesPerTrigger=size * 30)
    start = reader.initialOffset()
    assert nexts(reader.latestOffset(start, reader.getDefaultReadLimit())) == offsets(topic, 30)
    reader.stop()


def test_tags_are_those_of_files_and_broker(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    # the hashes of two of the tags are equal
    messages = [
        Message(topic, body, properties={"TAGS": ("AaAa", "BBBB", "red")[i % 3]}) for i, body in enumerate(numbered(90))
    ]
    broker.send(topic, messages[:60])
    store = copied(broker, topic, 60, tmp_path / "copy")
    broker.send(topic, messages[60:])
    reader = batch(broker, store, topic=topic, tags="BBBB")
    assert rows(reader, reader.partitions()) == expected(90)[1::3]


@pytest.fixture
def shortened(tmp_path: Path) -> Iterator[tuple[Broker, str, Path, int]]:
    """(a broker that keeps less than was sent, its topic of one queue with 2000 messages, a copy of all, first kept)."""
    options = ("mapped_file_size_commit_log=65536", "mapped_file_size_consume_queue=2000")
    server = EmbeddedProcess(str(tmp_path / "store"), free_port(), free_port(), options)
    with server:
        broker = Broker(server.name_server, server.broker, store=server.store)
        topic = broker.topic(1)
        broker.send(topic, numbered(2000))
        store = copied(broker, topic, 2000, tmp_path / "copy")
        server.stop()
        for file in sorted((Path(server.store) / "commitlog").iterdir())[:2]:
            file.unlink()
        server.start()
        (first,) = (
            queues["0"]
            for brokers in LiveStreamReader(
                live_options({"nameServer": server.name_server, "topic": topic, "startingOffsets": "earliest"}), COLUMNS
            ).initialOffset().values()
            for queues in brokers.values()
        )  # fmt: skip
        yield broker, topic, store, first


def test_what_the_broker_keeps_no_longer_is_read_from_files(shortened: tuple[Broker, str, Path, int]) -> None:
    broker, topic, store, first = shortened
    assert 0 < first < 2000
    begun = stream(broker, store, topic=topic, startingOffsets="earliest")
    assert begun.initialOffset() == offsets(topic, 0)
    begun.stop()
    everything = batch(broker, store, topic=topic)
    assert rows(everything, everything.partitions()) == expected(2000)
    by_time = batch(broker, store, topic=topic, startingTimestamp="2020-01-01", endingTimestamp="2020-01-02")
    assert by_time.partitions() == []
    since = batch(broker, store, topic=topic, startingTimestamp="2020-01-01")
    assert rows(since, since.partitions()) == expected(2000)


def test_what_neither_keeps_is_lost_or_passed_over(shortened: tuple[Broker, str, Path, int]) -> None:
    broker, topic, store, first = shortened
    sorted((store / "commitlog").iterdir())[0].unlink()
    held = batch(broker, store, topic=topic).held
    assert held is not None
    (queue,) = broker.cluster().readable_queues(topic)
    kept = held.first_offset(queue)
    assert kept is not None and 0 < kept < first
    strict, lenient = (
        stream(broker, store, topic=topic, failOnDataLoss=fail, startingOffsets="earliest")
        for fail in ("true", "false")
    )
    assert strict.initialOffset() == offsets(topic, kept)
    splits = strict.partitions(offsets(topic, 0), offsets(topic, 2000))
    with pytest.raises(OffsetsLost, match=f"offset 0 was requested, the first one is {first}: deleted since"):
        rows(strict, splits)
    assert rows(lenient, splits) == expected(2000)[kept:]
    strict.stop()


def test_a_store_that_is_not_there_at_the_begin_is_refused(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    with pytest.raises(NoCommitLog, match="no such directory; use the directory that contains commitlog"):
        stream(broker, tmp_path / "misspelt", topic=topic).initialOffset()
    with pytest.raises(NoCommitLog, match="no such directory"):
        batch(broker, tmp_path / "misspelt", topic=topic).partitions()
    with pytest.raises(WrongOption, match="1 stores are read, each needs a name"):
        batch(broker, tmp_path, topic=topic, brokerName="broker-a,broker-b")


def test_a_stream_in_spark_goes_over_and_on(session: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(200), 0)
    broker.send(topic, numbered(200, 200), 1)
    store = copied(broker, topic, 400, tmp_path / "slave")
    broker.send(topic, numbered(100, 400), 1)
    options = {
        "subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 300,
        "backfill": str(store), "brokerName": "broker-a",
    }  # fmt: skip
    drain(session, broker, tmp_path, **options)
    assert texts(session, tmp_path) == [body.decode() for body in numbered(500)]
    by_store = live(session, broker, **{name: options[name] for name in ("subscribe", "backfill", "brokerName")})
    assert {tuple(row) for row in by_store.groupBy("store").count().collect()} == {(str(store), 400), (None, 100)}
    shutil.rmtree(store)
    broker.send(topic, numbered(100, 500), 0)
    drain(session, broker, tmp_path, **options)
    assert texts(session, tmp_path) == [body.decode() for body in numbered(600)]
