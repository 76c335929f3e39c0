"""The format "rocketmq" inside Spark."""

from __future__ import annotations

import base64
import datetime
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.stores import StoreWriter
from tests.support.captures import STORES, expected_messages
from twisted_mq.spark.columns.schema import COLUMN_NAMES, DEFAULT_COLUMNS
from twisted_mq.spark.tables import register


def read(session: SparkSession, store: str, **options: str) -> DataFrame:
    return session.read.format("rocketmq").options(**options).load(store)


def in_order(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.orderBy("physicalOffset").collect()]


def ms(time: datetime.datetime) -> int:
    return round(time.astimezone(datetime.UTC).timestamp() * 1000)


def as_apache_prints(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the words of the recorded expectation."""
    copied = ("topic", "queueId", "queueOffset", "storeSize", "bodyCRC", "sysFlag", "flag", "bornHost", "storeHost")
    more = ("reconsumeTimes", "preparedTransactionOffset", "properties")
    return {
        **{name: row[name] for name in (*copied, *more)},
        "commitLogOffset": row["physicalOffset"],
        "bornTimestamp": ms(row["bornTimestamp"]),
        "storeTimestamp": ms(row["storeTimestamp"]),
        "bodyLength": len(row["body"]),
        "bodySha256": hashlib.sha256(row["body"]).hexdigest(),
        "bodyBase64": base64.b64encode(row["body"]).decode() if len(row["body"]) <= 64 else None,
    }


@pytest.mark.parametrize("store", STORES)
def test_recorded_stores_equal_what_apache_read(
    session: SparkSession, captured: Callable[[str], str], store: str
) -> None:
    frame = read(session, captured(store), columns="all", maxPartitionBytes="32k")
    assert tuple(frame.columns) == COLUMN_NAMES
    found = in_order(frame)
    rows = [as_apache_prints(row) for row in found]
    expected = expected_messages(store)
    assert rows == [{name: message.get(name) for name in rows[0]} for message in expected]
    assert all(row["crcOk"] for row in found)
    assert [row["tags"] for row in found] == [message["properties"].get("TAGS") for message in expected]


def test_a_file_gives_several_tasks(session: SparkSession, writer: StoreWriter) -> None:
    for _ in range(100):
        writer.append(body=b"x" * 200)
    store = writer.write()
    assert read(session, store).rdd.getNumPartitions() == 1
    assert read(session, store, maxPartitionBytes="8k").rdd.getNumPartitions() == 4
    assert read(session, store, maxPartitionBytes="8k").count() == 100


def test_topic_and_columns_and_range(session: SparkSession, writer: StoreWriter) -> None:
    for number in range(6):
        writer.append(topic=("Orders", "Payments")[number % 2], properties={"TAGS": f"t{number}"})
    store = writer.write()
    some = read(session, store, topic="Payments", columns="tags,physicalOffset", startOffset=str(writer.positions[3]))
    assert in_order(some) == [
        {"tags": "t3", "physicalOffset": writer.positions[3]},
        {"tags": "t5", "physicalOffset": writer.positions[5]},
    ]


@pytest.mark.parametrize("store", STORES)
def test_counts_of_tasks_are_those_of_rows(session: SparkSession, captured: Callable[[str], str], store: str) -> None:
    register(session)
    path = captured(store)
    topic = expected_messages(store)[0]["topic"]
    queues = {"through": "queues"}
    for options in (
        {},
        {"topic": topic},
        {**queues, "topic": topic},
        {**queues, "topicPattern": ".*"},
        {"endTime": "0"},
    ):
        parts = session.read.format("rocketmq.count").options(maxPartitionBytes="32k", **options).load(path).collect()
        assert sum(row.messages for row in parts) == read(session, path, **options).count(), options
        assert {row.store for row in parts} <= {path}
        if not options:
            assert sum(row.messages for row in parts) > 10


def test_counts_are_of_stores_in_batches(session: SparkSession, writer: StoreWriter) -> None:
    register(session)
    writer.append()
    store = writer.write()
    counted = session.read.format("rocketmq.count").load(store)
    writer.append()
    writer.write()
    assert [counted.agg({"messages": "sum"}).collect()[0][0] for _ in range(2)] == [1, 1]  # of load()
    with pytest.raises(PySparkException, match="messages of stores are counted"):
        session.read.format("rocketmq.count").options(nameServer="127.0.0.1:1", topic="T").load()
    with pytest.raises(PySparkException, match="counted in batches"):
        session.readStream.format("rocketmq.count").load(store).writeStream.format("noop").start().awaitTermination(30)


def test_a_schema_chooses_columns(session: SparkSession, writer: StoreWriter) -> None:
    writer.append(properties={"KEYS": "k"})
    frame = session.read.format("rocketmq").schema("keys string, storeSize int").load(writer.write())
    assert [row.asDict() for row in frame.collect()] == [{"keys": "k", "storeSize": 108}]


def test_ipv6_hosts_and_version_2(session: SparkSession, writer: StoreWriter) -> None:
    from tests.spark.stores import IPV6_BORN, IPV6_STORE

    long_topic = "%RETRY%" + "g" * 140
    writer.append(topic=long_topic, born_host=IPV6_BORN, store_host=IPV6_STORE)
    writer.append(store_host=IPV6_STORE)
    frame = read(session, writer.write(), columns="physicalOffset,topic,bornHost,storeHost")
    assert [tuple(row.values())[1:] for row in in_order(frame)] == [
        (long_topic, "[2001:db8::7]:49084", "[2001:db8::1]:10911"),
        ("Orders", "10.0.0.7:49084", "[2001:db8::1]:10911"),
    ]


def test_damage_is_passed_over_or_an_error(session: SparkSession, writer: StoreWriter) -> None:
    for _ in range(3):
        writer.append()
    writer.overwrite(writer.positions[1], b"\xee" * 8)
    store = writer.write()
    assert [row["queueOffset"] for row in in_order(read(session, store))] == [0, 2]
    with pytest.raises(PySparkException, match="damaged bytes at physical offset 101: magic 0xEEEEEEEE"):
        read(session, store, failOnDamage="true").collect()


def test_empty_store_and_missing_directory(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    empty = read(session, str(tmp_path))
    assert (empty.columns, empty.collect()) == (list(DEFAULT_COLUMNS), [])
    with pytest.raises(PySparkException, match="no such directory; use the directory that contains commitlog/"):
        read(session, str(tmp_path / "absent")).collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "Orders"}, "unknown option, did you mean topic.; the options are path, brokerName"),
        ({"columns": "topics"}, "unknown column; the columns are topic, queueId"),
    ],
)
def test_wrong_options_fail_before_reading(
    session: SparkSession, writer: StoreWriter, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        read(session, writer.write(), **options)


def test_a_schema_of_other_types_fails(session: SparkSession, writer: StoreWriter) -> None:
    frame = session.read.format("rocketmq").schema("queueId string")
    with pytest.raises(PySparkException, match=r"queueId string'?: is of type int"):
        frame.load(writer.write()).collect()


def test_actions_on_one_frame_see_the_same_rows(session: SparkSession, writer: StoreWriter) -> None:
    """Records appended after load() belong to the next one, also with a user's schema."""
    for _ in range(3):
        writer.append()
    store = writer.write()
    frames = [read(session, store, columns="queueOffset"), session.read.format("rocketmq").schema("queueOffset bigint")]
    frames[1] = frames[1].load(store)
    assert [frame.count() for frame in frames] == [3, 3]
    for _ in range(4):
        writer.append()
    writer.write()
    assert [frame.count() for frame in frames] == [3, 3]
    assert frames[0].where("queueOffset >= 0").count() == 3
    assert read(session, store).count() == 7


def test_several_stores_patterns_and_file_uris(session: SparkSession, tmp_path: Path) -> None:
    for name, count in (("a", 2), ("b", 3)):
        writer = StoreWriter(tmp_path / f"broker-{name}" / "store")
        for _ in range(count):
            writer.append()
        writer.write()
    paths = [f"{tmp_path}/broker-{name}/store" for name in "ab"]
    source = session.read.format("rocketmq").option("columns", "store,brokerName").option("brokerName", "a,b")
    counted = [tuple(row) for row in source.load(paths).groupBy("store", "brokerName").count().collect()]
    assert sorted(counted) == [(paths[0], "a", 2), (paths[1], "b", 3)]
    assert source.load(f"{tmp_path}/broker-*/store").count() == 5
    assert read(session, f"file:{paths[1]}").count() == read(session, f"file://{paths[1]}").count() == 3


def test_a_table_in_sql(session: SparkSession, writer: StoreWriter) -> None:
    for number in range(4):
        writer.append(topic=("Orders", "Payments")[number % 2])
    store = writer.write()
    session.sql(f"CREATE TEMPORARY VIEW orders USING rocketmq OPTIONS (path '{store}', topic 'Orders')")
    assert session.sql("SELECT topic, queueOffset FROM orders ORDER BY queueOffset").collect() == [
        ("Orders", 0),
        ("Orders", 1),
    ]
    session.sql(f"CREATE TABLE messages USING rocketmq OPTIONS (topic 'Orders') LOCATION '{store}'")
    try:
        given = f"SELECT count(*) FROM messages WITH (`path` = '{store}', `topic` = 'Orders')"
        assert session.sql(given).collect() == [(2,)]
        with pytest.raises(PySparkException, match="whose options Spark hands to no Python source"):
            session.sql("SELECT count(*) FROM messages").collect()
    finally:
        session.sql("DROP TABLE messages")


def test_a_view_of_a_query_is_planned_at_each_execution(session: SparkSession, writer: StoreWriter) -> None:
    """A view over load() is what there was then; one over a table, whose query says the path, is what there is now."""
    for _ in range(3):
        writer.append()
    store = writer.write()
    read(session, store).createOrReplaceTempView("then")
    session.sql(f"CREATE TABLE logs USING rocketmq OPTIONS (path '{store}')")
    try:
        session.sql(f"CREATE TEMPORARY VIEW now AS SELECT * FROM logs WITH (path = '{store}')")
        counts = "SELECT (SELECT count(*) FROM {0}), (SELECT count(*) FROM {0} WHERE topic = 'Orders')"
        for more, expected in ((0, 3), (4, 7)):
            for _ in range(more):
                writer.append()
            writer.write()
            for pushed in ("false", "true"):
                session.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
                assert session.sql(counts.format("then")).collect() == [(3, 3)]
                assert session.sql(counts.format("now")).collect() == [(expected, expected)]
    finally:
        session.conf.unset("spark.sql.python.filterPushdown.enabled")
        session.sql("DROP TABLE logs")


def test_a_half_written_record_at_the_end_is_no_damage(session: SparkSession, writer: StoreWriter) -> None:
    for _ in range(3):
        writer.append(body=b"x" * 100)
    writer.overwrite(writer.positions[2] + 150, bytes(writer.position - writer.positions[2] - 150))
    assert read(session, writer.write(), failOnDamage="true").count() == 2


def test_a_file_deleted_after_planning_is_named_or_passed_over(session: SparkSession, tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=4096)
    for _ in range(100):
        writer.append()
    store = writer.write()
    frames = [read(session, store, brokerName="a", failOnDataLoss=fail) for fail in ("true", "false")]
    kept = [[row.queueOffset for row in frame.where("queueOffset >= 0").collect()] for frame in frames]
    plans = [frame._jdf.queryExecution().executedPlan() for frame in frames]
    assert [len(rows) for rows in kept] == [100, 100] and all(plans)
    first = Path(store, "commitlog", f"{0:020d}")
    first.unlink()
    with pytest.raises(
        PySparkException, match=r"broker a, store .*: physical offsets 0 to 4096 wanted, the log from 4096"
    ):
        frames[0].collect()
    assert [row.physicalOffset for row in frames[1].collect()] == [one for one in writer.positions if one >= 4096]


def test_a_store_that_is_being_written(session: SparkSession, tmp_path: Path) -> None:
    """Each read sees a run of whole records from the first one on, whatever the writer does meanwhile."""
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    for _ in range(4000):
        writer.append(body=b"x" * 100)
    content = bytes(writer._log[0])
    path = tmp_path / "store" / "commitlog" / f"{0:020d}"
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(1 << 20))
    done = threading.Event()

    def write() -> None:
        with open(path, "r+b", buffering=0) as file:
            for start in range(0, writer.position, 777):
                file.write(content[start : start + 777])
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    counts = []
    while not done.is_set() or not counts:
        offsets = [
            row["physicalOffset"] for row in in_order(read(session, str(tmp_path / "store"), columns="physicalOffset"))
        ]
        assert offsets == writer.positions[: len(offsets)]
        counts.append(len(offsets))
    thread.join()
    assert counts == sorted(counts)
    assert read(session, str(tmp_path / "store")).count() == 4000
