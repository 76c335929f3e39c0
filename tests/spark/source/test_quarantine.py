"""Damaged bytes put aside."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet as pq

from tests.spark.stores import StoreWriter
from twisted_mq.spark.errors import DataLost
from twisted_mq.spark.source import quarantine
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader


def read(store: str, aside: Path, **options: str) -> list[int]:
    given = {"path": store, "brokerName": "broker-a", "quarantine": str(aside), **options}
    reader = StoreReader(read_options(given), ["physicalOffset"])
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    return [offset for batch in batches for offset in batch["physicalOffset"].to_pylist()]


@pytest.fixture
def damaged(writer: StoreWriter) -> StoreWriter:
    """The second and the fifth record are not whole."""
    for number in range(60):
        writer.append(body=b"%d" % number * 100)
    writer.overwrite(writer.positions[1] + 4, b"gone")
    writer.overwrite(writer.positions[4], b"\xee" * 30)
    writer.write()
    return writer


@pytest.mark.parametrize("part", ["4k", "64m"])
def test_each_stretch_is_put_aside_once_with_its_bytes(damaged: StoreWriter, tmp_path: Path, part: str) -> None:
    store, aside = str(damaged.root), tmp_path / "aside"
    intact = [offset for number, offset in enumerate(damaged.positions) if number not in (1, 4)]
    for _ in range(2):
        assert read(store, aside, maxPartitionBytes=part) == intact
    log = (damaged.root / "commitlog" / f"{0:020d}").read_bytes()
    rows = pq.read_table(aside).sort_by("physicalOffset").to_pylist()
    stretches = [tuple(damaged.positions[number : number + 2]) for number in (1, 4)]
    reasons = ["magic 0x676F6E65 is not a message's", "magic 0xEEEEEEEE is not a message's"]
    assert rows == [
        {
            "store": store,
            "brokerName": "broker-a",
            "file": f"{0:020d}",
            "physicalOffset": begin,
            "length": end - begin,
            "reason": reason,
            "bytes": log[begin:end],
        }
        for (begin, end), reason in zip(stretches, reasons, strict=True)
    ]


def test_a_long_stretch_has_several_rows(damaged: StoreWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "WINDOW_BYTES", 100)
    read(str(damaged.root), tmp_path / "aside")
    rows = [
        row for row in pq.read_table(tmp_path / "aside").to_pylist() if row["physicalOffset"] < damaged.positions[2]
    ]
    log = (damaged.root / "commitlog" / f"{0:020d}").read_bytes()
    assert b"".join(row["bytes"] for row in rows) == log[damaged.positions[1] : damaged.positions[2]]
    assert [row["length"] for row in rows[:-1]] == [100] * (len(rows) - 1)


def test_a_sound_store_makes_no_file(writer: StoreWriter, tmp_path: Path) -> None:
    writer.append()
    assert read(writer.write(), tmp_path / "aside") == [0]
    assert not (tmp_path / "aside").exists()


def test_lost_stretches_are_put_aside_without_bytes(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=2048)
    while writer.position < 5 * 2048:
        writer.append(body=b"x" * 200)
    store, aside = writer.write(), tmp_path / "aside"
    for number in (1, 3):
        (writer.root / "commitlog" / f"{number * 2048:020d}").unlink()
    with pytest.raises(DataLost):
        read(store, aside)
    assert not aside.exists()
    for _ in range(2):
        left = read(store, aside, failOnDataLoss="false", endOffset="20000")
        assert left == [place for place in writer.positions if place // 2048 not in (1, 3)]
    rows = sorted(pq.read_table(aside).to_pylist(), key=lambda row: row["physicalOffset"])
    end = writer.position
    assert [(row["physicalOffset"], row["length"], row["bytes"]) for row in rows] == [
        (2048, 2048, None), (6144, 2048, None), (end, 20000 - end, None),
    ]  # fmt: skip
    assert {(row["store"], row["brokerName"]) for row in rows} == {(store, "broker-a")}
