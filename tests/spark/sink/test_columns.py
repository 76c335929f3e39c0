"""Rows as messages, and what is refused."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import MapType, StringType, StructType

from twisted_mq.protocol.messages.compression import plain_body
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.spark.columns.schema import COLUMNS
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.sink.columns import Outgoing, RowReader, check_columns
from twisted_mq.spark.sink.errors import WrongColumn, WrongRow
from twisted_mq.spark.sink.options import sink_options

NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
MAP = pa.map_(pa.string(), pa.string())


def rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def messages(batch: pa.RecordBatch, topic: str | None = "Orders") -> list[Outgoing]:
    return list(RowReader(topic, "q-7-3", 3).messages(batch))


def test_columns_become_properties() -> None:
    batch = rows(
        body=pa.array([b"one", b"two"]),
        topic=pa.array([None, "Other"]),
        tags=pa.array(["new", None]),
        keys=pa.array([["a", "b"], None]),
        properties=pa.array([[("colour", "grün")], None], MAP),
        delayLevel=pa.array([None, 3], pa.int32()),
        deliverAt=pa.array([NOON, None], pa.timestamp("us", tz="UTC")),
        shardingKey=pa.array(["k", None]),
        queue=pa.array([None, 2], pa.int32()),
    )
    first, second = messages(batch)
    assert (first.row, first.topic, first.body, first.place, first.alone) == (0, "Orders", b"one", "k", True)
    assert decode_property_bytes(first.properties) == {
        "colour": "grün",
        "TAGS": "new",
        "KEYS": "a b",
        "__SHARDINGKEY": "k",
        "TIMER_DELIVER_MS": str(int(NOON.timestamp() * 1000)),
        "UNIQ_KEY": "q-7-3-0",
        "WAIT": "true",
    }
    assert (second.row, second.topic, second.body, second.place, second.alone) == (1, "Other", b"two", 2, True)
    assert decode_property_bytes(second.properties) == {"DELAY": "3", "UNIQ_KEY": "q-7-3-1", "WAIT": "true"}


def test_text_is_a_body_and_an_id_of_the_users_stays() -> None:
    (message,) = messages(rows(body=pa.array(["grün"]), properties=pa.array([[("UNIQ_KEY", "mine")]], MAP)))
    assert message.body == "grün".encode()
    assert decode_property_bytes(message.properties)["UNIQ_KEY"] == "mine"


def test_rows_count_on_over_batches() -> None:
    reader = RowReader("Orders", "q-0-0", 0)
    batch = rows(body=pa.array([b"x", b"y"]))
    assert [message.row for message in (*reader.messages(batch), *reader.messages(batch))] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"body": pa.array([b"x", None])}, "body is null"),
        ({"body": pa.array([b"x", b""])}, "body is empty"),
        ({"body": pa.array([b"x", b"y"]), "keys": pa.array([["a"], ["b", None]])}, r"keys\[1\] is null"),
        ({"body": pa.array([b"x", b"y"]), "keys": pa.array([["a"], ["b c"]])}, r"keys\[0\]='b c' has a space"),
        ({"body": pa.array([b"x", b"y"]), "keys": pa.array([["a"], [""]])}, r"keys\[0\] is empty"),
        ({"body": pa.array([b"x", b"x" * (4 << 20 | 1)])}, "body of 4194305 bytes"),
        ({"body": pa.array([b"x", b"y"]), "topic": pa.array(["A", "a b"])}, "topic 'a b': .*illegal characters"),
        ({"body": pa.array([b"x", b"y"]), "topic": pa.array(["A", "SCHEDULE_TOPIC_XXXX"])}, "is a system topic"),
        ({"body": pa.array([b"x", b"y"]), "tags": pa.array(["a", "a\x02b"])}, r"without the characters U\+0001"),
        ({"body": pa.array([b"x", b"y"]), "tags": pa.array(["a", "a" * 40000])}, "at most 32767 are stored"),
        ({"body": pa.array([b"x", b"y"]), "delayLevel": pa.array([1, -1], pa.int32())}, "delayLevel -1"),
        (
            {"body": pa.array([b"x", b"y"]), "properties": pa.array([[], [("TAGS", "a")]], MAP)},
            "property TAGS is RocketMQ's own",
        ),
        (
            {
                "body": pa.array([b"x", b"y"]),
                "queue": pa.array([0, 0], pa.int32()),
                "shardingKey": pa.array([None, "k"]),
            },
            "has both queue and shardingKey",
        ),
    ],
)
def test_a_row_that_is_no_message_is_named(columns: dict[str, pa.Array], reason: str) -> None:
    with pytest.raises(WrongRow, match=f"row 1 of partition 3: .*{reason}") as caught:
        messages(rows(**columns))
    assert caught.value.row == 1


def test_reading_goes_on_behind_a_row_that_is_no_message() -> None:
    reader = RowReader("Orders", "q-7-3", 3)
    first, second, third = reader.read(rows(body=pa.array([b"x", b"", b"z"])))
    assert isinstance(first, Outgoing) and isinstance(second, WrongRow) and isinstance(third, Outgoing)
    assert (first.row, second.row, third.row) == (0, 1, 2)


def test_rows_of_the_source_are_sent_as_they_are_to_the_topic_of_the_option() -> None:
    batch = rows(
        topic=pa.array(["Orders"]),
        queueOffset=pa.array([17]),
        body=pa.array([b"one"]),
        tags=pa.array(["new"]),
        keys=pa.array(["a b"]),
        uniqKey=pa.array(["7F00"]),
        properties=pa.array(
            [[("TAGS", "new"), ("KEYS", "a b"), ("UNIQ_KEY", "7F00"), ("colour", "green"), ("DELAY", "3")]], MAP
        ),
    )
    (copy,), (back,) = messages(batch, "Copies"), messages(batch, None)
    assert (copy.topic, back.topic) == ("Copies", "Orders")
    assert decode_property_bytes(copy.properties) == {
        "colour": "green", "TAGS": "new", "KEYS": "a b", "UNIQ_KEY": "7F00", "WAIT": "true",
    }  # fmt: skip


def schema_of(**types: object) -> StructType:
    made = StructType()
    for name, kind in types.items():
        made = made.add(name, kind)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("found", "topic", "reason"),
    [
        (schema_of(body="integer"), "T", "column 'body': is of type int, binary or string is needed"),
        (schema_of(body="binary", tag="string"), "T", "column 'tag': .* did you mean 'tags'"),
        (schema_of(body="binary", queue="long"), "T", "column 'queue': is of type bigint, int is needed"),
        (schema_of(tags="string"), "T", "column 'body': is needed"),
        (schema_of(body="binary"), None, "column 'topic': is needed, or the option topic"),
    ],
)
def test_columns_of_other_types_are_refused_by_name(found: StructType, topic: str | None, reason: str) -> None:
    with pytest.raises(WrongColumn, match=reason):
        check_columns(found, topic)


def test_all_columns_of_the_source_pass() -> None:
    types = {"int": "integer", "bigint": "long", "map<string,string>": MapType(StringType(), StringType())}
    check_columns(schema_of(**{column.name: types.get(column.type, column.type) for column in COLUMNS}), None)
    with pytest.raises(WrongColumn, match="'queueId'"):
        check_columns(schema_of(body="binary", topic="string", queueId="integer"), None)


def test_all_columns_pass() -> None:
    check_columns(schema_of(body="string", topic="string", tags="string", queue="integer", deliverAt="timestamp"), None)


def test_large_bodies_leave_compressed_each_by_itself() -> None:
    options = sink_options({"nameServer": "a:1", "compression": "zstd", "compressOver": "100"})
    reader = RowReader("Orders", "q-7-3", 3, options.compression)
    small, large = reader.messages(rows(body=pa.array([b"x" * 100, b"y" * 101])))
    assert (small.body, small.sys_flag, small.alone) == (b"x" * 100, 0, False)
    assert (plain_body(large.body, large.sys_flag), large.alone) == (b"y" * 101, True)
    assert large.sys_flag == 0x201 and len(large.body) < 101
    assert sink_options({"nameServer": "a:1", "compression": "none"}).compression.kind is None
    with pytest.raises(WrongOption, match="none, lz4, zlib, zstd are known"):
        sink_options({"nameServer": "a:1", "compression": "gzip"})
