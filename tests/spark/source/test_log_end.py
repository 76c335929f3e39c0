"""End of a log after its last complete record, and the number of reads to find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from twisted_mq.spark.errors import DamagedLog
from twisted_mq.spark.source.log_end import complete_end
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import Store, list_log_files


def end_of(root: str) -> int:
    return complete_end(Store(root), list_log_files(Store(root)))


def test_the_end_is_behind_the_last_whole_record(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    assert end_of(writer.write()) == 0
    for number in range(400):
        writer.append(body=b"x" * (number * 37 % 5000))
        if number % 57 == 0:
            assert end_of(writer.write()) == writer.position


@pytest.mark.parametrize("kept", [1, 4, 36, 88, 100, 150, 199])
def test_a_record_that_is_being_written_is_no_part_of_it(writer: StoreWriter, kept: int) -> None:
    for _ in range(50):
        writer.append(body=b"x" * 100, properties={"TAGS": "a"})
    last = writer.positions[-1]
    writer.overwrite(last + kept, bytes(writer.position - last - kept))
    assert end_of(writer.write()) == last


def test_properties_that_lack_their_last_byte_are_not_whole(writer: StoreWriter) -> None:
    writer.append()
    last = writer.append(properties={"TAGS": "a", "KEYS": "b"})
    writer.overwrite(writer.position - 1, b"\0")
    assert end_of(writer.write()) == last


def test_long_bodies_of_zeros_do_not_end_the_log(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=4 << 20)
    for size in (10, 700_000, 10, 900_000, 1_500_000, 10):
        writer.append(body=bytes(size))
    assert end_of(writer.write()) == writer.position


def test_damage_before_the_end_does_not_end_the_log(writer: StoreWriter) -> None:
    for _ in range(50):
        writer.append(body=b"x" * 100)
    for number in (20, 47, 48):
        writer.overwrite(writer.positions[number], b"\xee" * 50)
    assert end_of(writer.write()) == writer.position


def test_files_made_ahead_and_full_ones(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=4096)
    for _ in range(60):
        writer.append()
    store = writer.write()
    assert end_of(store) == writer.position
    ahead = writer.position - writer.position % 4096 + 4096
    for first in (ahead, ahead + 4096):
        Path(store, "commitlog", f"{first:020d}").write_bytes(bytes(4096))
    assert end_of(store) == writer.position
    Path(store, "commitlog", f"{ahead - 4096:020d}").write_bytes(bytes(4096))
    assert end_of(store) == ahead - 4096  # the blank record fills the file before


@pytest.mark.parametrize("queues", [True, False], ids=["queues", "log alone"])
def test_a_last_file_whose_head_is_zero_is_damaged_where_the_one_before_it_is_full(
    tmp_path: Path, queues: bool
) -> None:
    """All its rows vanished, also with failOnDamage=true."""
    writer = StoreWriter(tmp_path / "store", file_size=1 << 16)
    while writer.position < 3 * (1 << 16) + 40_000:
        writer.append(body=b"x" * 100)
    head = 3 << 16
    writer.overwrite(head, bytes(8192))
    store = writer.write(queues)
    lost = [place for place in writer.positions if head <= place < head + 8192]
    assert end_of(store) == writer.position
    reader = StoreReader(read_options({"path": store}), ["physicalOffset"])
    found = [place for split in reader.partitions() for batch in reader.read(split) for place in batch[0].to_pylist()]
    assert found == [place for place in writer.positions if place not in lost]
    strict = StoreReader(read_options({"path": store, "failOnDamage": "true"}), ["physicalOffset"])
    with pytest.raises(DamagedLog):
        [list(strict.read(split)) for split in strict.partitions()]


def test_the_head_of_an_only_file_is_damaged_where_the_store_has_queues(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store")
    for _ in range(200):
        writer.append(body=b"x" * 100)
    writer.overwrite(0, bytes(8192))
    assert end_of(writer.write()) == writer.position


def test_few_bytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=64 << 20)
    while writer.position < 40 << 20:
        writer.append(body=b"x" * 100_000)
    read: list[int] = []
    monkeypatch.setattr(OpenLog, "_read", _counting(OpenLog._read, read))
    assert end_of(writer.write()) == writer.position
    assert sum(read) < 1 << 20


def _counting(read, counts):  # type: ignore[no-untyped-def]
    def counted(log: OpenLog, length: int, position: int) -> bytes:
        counts.append(length)
        return read(log, length, position)

    return counted
