"""Files of records of a declaration of the user's."""

from __future__ import annotations

import struct
from pathlib import Path

import construct
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.spark.tables.test_tables import READING
from twisted_mq.protocol.layouts.derive import LayoutError, derive_runs
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.tables import record_files, register_layout
from twisted_mq.spark.tables.record_files import LayoutReader, LayoutSource

POINT = construct.Struct(
    "number" / construct.Int16ub,
    "small" / construct.Int8sb,
    "label" / construct.Bytes(3),
    "half" / construct.Float16b,
    "big" / construct.Int64sb,
    "height" / construct.Float64b,
)
POINTS = [
    {"number": 65535 - n, "small": -n, "label": b"%03d" % n, "half": n / 2, "big": -(1 << 40) * n, "height": n / 7}
    for n in range(100)
]


def rows(layout: construct.Struct, path: Path, part_bytes: int = 1 << 20) -> list[dict[str, object]]:
    reader = LayoutReader(tuple(derive_runs(layout)), str(path), part_bytes)
    return [row for split in reader.partitions() for batch in reader.read(split) for row in batch.to_pylist()]


def reading(sensor: int, name: bytes, note: bytes) -> dict[str, object]:
    values = {"sensor": sensor, "name_length": len(name), "name": name}
    return {**values, "celsius": sensor / 4, "note_length": len(note), "note": note}


@pytest.mark.parametrize("part_bytes", [1, 100, 1 << 20])
def test_records_of_one_size(tmp_path: Path, part_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_files, "WINDOW_BYTES", 70)
    path = tmp_path / "points"
    path.write_bytes(b"".join(map(POINT.build, POINTS)))
    size = POINT.sizeof()
    places = [{"file": str(path), "position": number * size} for number in range(len(POINTS))]
    assert rows(POINT, path, part_bytes) == [{**place, **point} for place, point in zip(places, POINTS, strict=True)]


@given(
    st.lists(st.builds(reading, st.integers(0, 1 << 20), st.binary(max_size=40), st.binary(max_size=300))),
    st.integers(1, 400),
)
def test_records_of_many_sizes_are_those_of_construct(
    tmp_path_factory: pytest.TempPathFactory, readings: list[dict[str, object]], window: int
) -> None:
    path = tmp_path_factory.mktemp("readings") / "readings"
    path.write_bytes(b"".join(map(READING.build, readings)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_files, "WINDOW_BYTES", window)
        found = rows(READING, path)
    assert [{name: row[name] for name in row if name not in ("file", "position")} for row in found] == readings
    parsed = construct.GreedyRange(READING).parse(path.read_bytes())
    assert [tuple(row.values())[2:] for row in found] == [tuple(one.values())[1:] for one in parsed]


def test_a_folders_files_in_order_without_hidden_ones(tmp_path: Path) -> None:
    for name, numbers in (("b", range(5)), ("a", range(5, 8)), ("_SUCCESS", range(1)), (".c", range(1))):
        (tmp_path / name).write_bytes(b"".join(POINT.build(POINTS[number]) for number in numbers))
    assert [row["number"] for row in rows(POINT, tmp_path)] == [65535 - n for n in (5, 6, 7, 0, 1, 2, 3, 4)]


def test_bytes_that_are_no_record_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "points"
    path.write_bytes(POINT.build(POINTS[0]) + b"xy")
    with pytest.raises(StoreReadError, match=f"points: no record at offset {POINT.sizeof()}: 2 bytes are left"):
        rows(POINT, path)
    path = tmp_path / "readings"
    whole = READING.build(reading(1, b"a", b"b"))
    path.write_bytes(whole + whole[:-1])
    with pytest.raises(
        StoreReadError, match=f"readings: no record at offset {len(whole)}: note of 1 bytes, 0 are left"
    ):
        rows(READING, path)
    signed = construct.Struct("size" / construct.Int32sb, "data" / construct.Bytes(construct.this.size))
    path.write_bytes(struct.pack(">i", -5) + bytes(100))
    monkeypatch.setattr(record_files, "WINDOW_BYTES", 10)
    with pytest.raises(StoreReadError, match="no record at offset 0: data of -5 bytes"):
        rows(signed, path)
    monkeypatch.setattr(record_files, "LARGEST_RECORD", 50)
    path.write_bytes(struct.pack(">i", 90) + bytes(90))
    with pytest.raises(StoreReadError, match="no record at offset 0: data of 90 bytes"):
        rows(signed, path)
    with pytest.raises(StoreReadError, match="nowhere: no such file or directory"):
        rows(POINT, tmp_path / "nowhere")


def test_a_declaration_that_makes_no_columns_is_refused(session: SparkSession) -> None:
    for layout, reason in (
        (construct.Struct("n" / construct.Int32ul), "is not big-endian"),
        (construct.Struct("big" / construct.Int64ub), "no Spark type for 'big'"),
        (construct.Struct("file" / construct.Int32ub), "'file' is a column of every file"),
    ):
        with pytest.raises(LayoutError, match=reason):
            register_layout(session, "refused", layout)


def test_a_registered_declaration_in_spark(session: SparkSession, tmp_path: Path) -> None:
    register_layout(session, "points", POINT)
    path = tmp_path / "points"
    path.write_bytes(b"".join(map(POINT.build, POINTS)))
    frame = session.read.format("points").option("maxPartitionBytes", "500").load(str(path))
    assert frame.columns == ["file", "position", *POINTS[0]]
    assert frame.rdd.getNumPartitions() > 1
    found = frame.orderBy("position").drop("file", "position").toArrow()
    assert found.to_pylist() == POINTS
    assert found.schema.field("label").type in (pa.binary(), pa.large_binary())


def test_its_options(tmp_path: Path) -> None:
    class Points(LayoutSource):
        format = "points"
        runs = tuple(derive_runs(POINT))

    with pytest.raises(WrongOption, match="a path is needed"):
        Points({}).reader(None)  # type: ignore[arg-type]
    with pytest.raises(WrongOption, match="unknown option, did you mean maxPartitionBytes"):
        Points({"path": str(tmp_path), "maxPartitionByte": "1"}).reader(None)  # type: ignore[arg-type]
    with pytest.raises(WrongOption, match="choose columns with select"):
        Points({"path": str(tmp_path)}).reader(StructType().add("file", "string"))
