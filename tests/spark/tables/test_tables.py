"""The tables beside the log, on recorded stores and frames."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path

import construct
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from tests.support.captures import CAPTURES, SCENARIOS, expected_messages, frame_index
from twisted_mq.protocol.layouts.derive import LayoutError, LengthError, derive_runs
from twisted_mq.protocol.layouts.derive_values import all_fields, value_reader
from twisted_mq.protocol.layouts.index import index_key, key_hash
from twisted_mq.protocol.layouts.timer import LOG_UNIT, LOG_UNIT_BYTES, LogUnit, encode_log_blank
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.tables import from_frames, register
from twisted_mq.spark.tables.frame_columns import struct_maker
from twisted_mq.spark.tables.frame_source import FrameReader, FrameSource
from twisted_mq.spark.tables.sources import TABLES, IndexSource, TableReader

READING = construct.Struct(
    "sensor" / construct.Int32ub,
    "name_length" / construct.Int8ub,
    "name" / construct.Bytes(construct.this.name_length),
    "celsius" / construct.Float32b,
    "note_length" / construct.Int16ub,
    "note" / construct.Bytes(construct.this.note_length),
)
RUNS = tuple(derive_runs(READING))


def timed(row: dict[str, object]) -> int:
    """ms since the recording began."""
    time = row["time"]
    assert isinstance(time, datetime.datetime)
    return round(time.timestamp() * 1000)


def rows(table: str, path: str, keep_secrets: bool = False) -> list[dict[str, object]]:
    reader = FrameReader(path, keep_secrets) if table == "rocketmq.frames" else TableReader(table, path)
    return [row for split in reader.partitions() for batch in reader.read(split) for row in batch.to_pylist()]


@given(st.integers(0, 2**32 - 1), st.binary(max_size=40), st.integers(-50, 50), st.binary(max_size=300))
def test_derived_values_are_those_of_construct(sensor: int, name: bytes, celsius: int, note: bytes) -> None:
    values = {"sensor": sensor, "name": name, "celsius": float(celsius), "note": note}
    data = READING.build({**values, "name_length": len(name), "note_length": len(note)})
    parsed = READING.parse(data)
    assert value_reader(RUNS)(data) == tuple(parsed[field.name] for field in all_fields(RUNS))
    for wrong in (data[:-1], data + b"x", data[:3]):
        with pytest.raises(LengthError):
            value_reader(RUNS)(wrong)


def test_a_declared_body_becomes_a_struct() -> None:
    data = READING.build({"sensor": 7, "name_length": 1, "name": b"n", "celsius": 1.5, "note_length": 0, "note": b""})
    found = struct_maker(RUNS)(pa.array([data, None, data + b"?"]))
    assert found.to_pylist() == [
        {"sensor": 7, "name_length": 1, "name": b"n", "celsius": 1.5, "note_length": 0, "note": b""},
        None,
        None,
    ]
    with pytest.raises(LengthError):
        struct_maker(RUNS, True)(pa.array([b"?"]))
    with pytest.raises(LayoutError, match="no Spark type for 'big'"):
        struct_maker(tuple(derive_runs(construct.Struct("big" / construct.Int64ub))))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_frames_are_those_of_the_recordings_index(scenario: str) -> None:
    path = str(CAPTURES / "remoting" / f"{scenario}.frames")
    found = rows("rocketmq.frames", path, keep_secrets=True)
    index = frame_index(scenario)
    assert len(found) == len(index)
    for row, recorded in zip(found, index, strict=True):
        names = ("offset", "length", "code", "opaque", "flag", "language", "version", "serialize", "direction")
        assert [row[name] for name in names] == [recorded[name] for name in names]
        assert (row["name"] or "?", row["isOneWay"]) == (recorded["code_name"], recorded["oneway"])
        assert (row["connection"], timed(row)) == (str(recorded["connection"]), recorded["t_ms"])
        assert row["isResponse"] == (recorded["request_or_response"] == "response")
        assert len(row["body"]) == recorded["body_length"]  # type: ignore[arg-type]
    signed = ["Signature" in dict(row["extFields"]) for row in found]  # type: ignore[call-overload]
    hidden = [dict(row["extFields"]).get("Signature") for row in rows("rocketmq.frames", path)]  # type: ignore[call-overload]
    assert hidden == ["***" if one else None for one in signed]


def test_bytes_that_are_no_frame_are_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.frames"
    path.write_bytes((CAPTURES / "remoting" / "producer_batch.frames").read_bytes()[:-5])
    with pytest.raises(StoreReadError, match=r"cut\.frames: no frame at offset \d+"):
        rows("rocketmq.frames", str(path))


def test_queue_entries_lead_to_the_records(captured: Callable[[str], str]) -> None:
    found = rows("rocketmq.consumequeue", captured("st"))
    by_place = {
        (message["topic"], message["queueId"], message["queueOffset"]): message for message in expected_messages("st")
    }
    led = [row for row in found if (row["topic"], row["queueId"], row["queueOffset"]) in by_place]
    assert len(led) > 50
    for row in led:
        message = by_place[row["topic"], row["queueId"], row["queueOffset"]]  # type: ignore[index]
        assert (row["physicalOffset"], row["size"]) == (message["commitLogOffset"], message["storeSize"])


def test_configuration_entries_are_those_of_the_files(captured: Callable[[str], str]) -> None:
    store = captured("st")
    found = [row for row in rows("rocketmq.config", store) if str(row["file"]).endswith("topics.json")]
    topics = {row["key"]: json.loads(str(row["value"])) for row in found if row["section"] == "topicConfigTable"}
    assert topics == json.loads((Path(store) / "config" / "topics.json").read_text())["topicConfigTable"]


@pytest.mark.parametrize("content", [b"", b'{"topicConfigTable": {"a": ', b"\xff"], ids=["empty", "cut", "no text"])
def test_a_configuration_that_is_no_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "topics.json").write_bytes(content)
    with pytest.raises(StoreReadError, match=r"config/topics\.json: JSON: "):
        rows("rocketmq.config", str(tmp_path))


def test_transfers_follow_each_other() -> None:
    found = rows("rocketmq.ha", str(CAPTURES / "ha" / "from_empty.m2s"))
    assert sum(12 + int(str(row["size"])) for row in found) == (CAPTURES / "ha" / "from_empty.m2s").stat().st_size
    assert [len(row["body"]) for row in found] == [row["size"] for row in found]  # type: ignore[arg-type]


@pytest.mark.parametrize("table", sorted([*TABLES, "rocketmq.frames"]))
def test_a_path_that_there_is_not_is_named(tmp_path: Path, table: str) -> None:
    with pytest.raises(StoreReadError, match="/nowhere: no such file or directory"):
        rows(table, str(tmp_path / "nowhere"))


def test_a_table_needs_a_path_and_nothing_else() -> None:
    with pytest.raises(WrongOption, match="a path is needed"):
        FrameSource({}).reader(None)  # type: ignore[arg-type]
    with pytest.raises(WrongOption, match="unknown option"):
        FrameSource({"split": "1"}).reader(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [FrameSource, IndexSource])
def test_a_schema_of_others_is_refused(source: type[DataSource]) -> None:
    schema = StructType().add("keyHash", "string")
    with pytest.raises(WrongOption, match="choose columns with select"):
        source({"path": "p"}).reader(schema)


def test_tables_and_declared_bodies_in_spark(session: SparkSession) -> None:
    register(session)
    frames = session.read.format("rocketmq.frames").load(str(CAPTURES / "remoting" / "producer_batch.frames"))
    sends = [one for one in frame_index("producer_batch") if one["code_name"] == "SEND_BATCH_MESSAGE"]
    assert frames.where("name = 'SEND_BATCH_MESSAGE' and not isResponse").count() == len(sends) > 0
    data = READING.build({"sensor": 7, "name_length": 1, "name": b"n", "celsius": 1.5, "note_length": 0, "note": b""})
    bodies = session.createDataFrame([(data,), (b"?",)], "body binary")
    found = bodies.select(from_frames("body", READING).alias("reading"))
    assert [row.reading and row.reading.asDict() for row in found.collect()] == [
        {"sensor": 7, "name_length": 1, "name": b"n", "celsius": 1.5, "note_length": 0, "note": b""},
        None,
    ]


def test_index_entries_have_the_hashes_of_the_messages_keys(captured: Callable[[str], str]) -> None:
    found = rows("rocketmq.index", captured("st"))
    keys = {
        (key_hash(index_key(message["topic"], key)), message["commitLogOffset"]): message["storeTimestamp"]
        for message in expected_messages("st")
        for key in [message["properties"].get("UNIQ_KEY"), *message["properties"].get("KEYS", "").split()]
        if key
    }
    led = [row for row in found if (row["keyHash"], row["physicalOffset"]) in keys]
    assert len(led) > 50
    times = [
        keys[int(str(row["keyHash"])), int(str(row["physicalOffset"]))] - int(str(row["storeTime"])) for row in led
    ]
    assert all(abs(late) < 1000 for late in times)


def test_units_of_the_timer_log(tmp_path: Path) -> None:
    unit = LogUnit(LOG_UNIT_BYTES, -1, 1, 1_795_216_734_000, 5000, 640, 240, 77)
    (tmp_path / "timerlog").mkdir()
    data = LOG_UNIT.pack(*unit) * 2 + encode_log_blank(40).ljust(40, b"\0")
    (tmp_path / "timerlog" / f"{1040:020d}").write_bytes(data)
    found = rows("rocketmq.timer", str(tmp_path))
    assert [row["position"] for row in found] == [1040, 1040 + LOG_UNIT_BYTES]
    assert {name: found[0][name] for name in ("writeTime", "delayTime", "physicalOffset", "recordSize", "topicHash")} == {
        "writeTime": 1_795_216_734_000, "delayTime": 5000, "physicalOffset": 640, "recordSize": 240, "topicHash": 77,
    }  # fmt: skip
