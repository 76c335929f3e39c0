"""A master's store and its slave's, read as one: each message once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from twisted_mq.spark.errors import DataLost
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader

FILE = 2048


def found(*stores: str, names: str = "a,a", **options: str) -> list[tuple[int, str]]:
    """Physical offset of each row, and the name of the folder that its store is in."""
    given = {"paths": json.dumps(stores), "brokerName": names, **options}
    reader = StoreReader(read_options(given), ["physicalOffset", "store"])
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    return sorted((row["physicalOffset"], Path(row["store"]).parent.name) for one in batches for row in one.to_pylist())


@pytest.fixture
def master(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "master" / "store", file_size=FILE)
    while writer.position < 3.5 * FILE:
        writer.append(body=b"x" * 200)
    writer.write()
    return writer


def slave_of(master: StoreWriter, files: int = 4) -> str:
    """A copy that has the first files alone."""
    path = master.root.parents[1] / "slave" / "store"
    shutil.copytree(master.root, path)
    for log in sorted((path / "commitlog").iterdir())[files:]:
        log.unlink()
    return str(path)


def without_first(master: StoreWriter, files: int) -> str:
    for log in sorted((master.root / "commitlog").iterdir())[:files]:
        log.unlink()
    return str(master.root)


@pytest.mark.parametrize("slaves_files", [4, 2])
@pytest.mark.parametrize("through", ["log", "queues"])
def test_each_message_comes_from_one_of_them(master: StoreWriter, slaves_files: int, through: str) -> None:
    slave = slave_of(master, slaves_files)
    once = [place for place, _ in found(slave, str(master.root), through=through, topic="Orders")]
    assert once == master.positions
    apart = found(slave, str(master.root), names="a,b")
    assert len(apart) == len(once) + sum(store == "slave" for _, store in apart) > len(once)


@pytest.mark.parametrize("options", [{}, {"endOffset": str(4 * FILE)}, {"startOffset": "300", "minPartitions": "9"}])
def test_the_slave_has_what_retention_deleted_at_the_master(master: StoreWriter, options: dict[str, str]) -> None:
    slave = slave_of(master, 3)
    rows = found(slave, without_first(master, 2), **{**options, "failOnDataLoss": str(options == {}).lower()})
    begin = int(options.get("startOffset", 0))
    assert rows == [(place, "slave" if place < 2 * FILE else "master") for place in master.positions if place >= begin]


def test_what_no_copy_has_is_lost(master: StoreWriter) -> None:
    slave = slave_of(master, 1)
    stores = without_first(master, 2), slave
    with pytest.raises(
        DataLost, match=f"is in no copy: physical offsets {FILE} to {2 * FILE} wanted.*: {FILE} bytes are not there"
    ):
        found(*stores)
    rows = [place for place, _ in found(*stores, failOnDataLoss="false")]
    assert rows == [place for place in master.positions if place < FILE or place >= 2 * FILE]


def test_a_log_that_is_no_copy_is_found(master: StoreWriter) -> None:
    slave = slave_of(master, 2)
    other = StoreWriter(Path(slave), file_size=FILE)
    while other.position < 1.5 * FILE:
        other.append(body=b"y" * 200)
    other.write()
    with pytest.raises(
        DataLost, match=r"slave/store is not a copy of .*master/store: they differ in the record at \d+"
    ):
        found(str(master.root), slave)
    assert found(str(master.root), slave, failOnDataLoss="false") == [(place, "master") for place in master.positions]


def test_two_slaves_have_what_the_master_lacks_once(master: StoreWriter) -> None:
    slave = slave_of(master, 3)
    second = shutil.copytree(slave, master.root.parents[1] / "second" / "store")
    sorted((second / "commitlog").iterdir())[0].unlink()
    rows = found(slave, str(second), without_first(master, 2), names="a,a,a")
    assert rows == [(place, ("slave", "second", "master", "master")[place // FILE]) for place in master.positions]
