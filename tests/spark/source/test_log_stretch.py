"""The walk finds every intact record, and names what lies between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.stores import StoreWriter
from tests.support.captures import STORES, expected_messages
from twisted_mq.spark.source.log_file import LogFile, list_log_files
from twisted_mq.spark.source.log_stretch import Damage, read_stretch
from twisted_mq.storage.columns import walk as walk_module


def walked(store: str) -> tuple[list[int], list[Damage]]:
    """Physical offsets of all records, and all damage."""
    offsets: list[int] = []
    damage: list[Damage] = []
    for file in list_log_files(store):
        for piece in read_stretch(LogFile(file.path, file.first_offset), 0, file.size):
            if isinstance(piece, Damage):
                damage.append(piece)
            else:
                offsets += (piece.spans.starts + file.first_offset).tolist()
    return offsets, damage


@pytest.mark.parametrize("store", STORES)
def test_recorded_stores_have_the_records_that_apache_read(captured: Callable[[str], str], store: str) -> None:
    offsets, damage = walked(captured(store))
    assert offsets == [message["commitLogOffset"] for message in expected_messages(store)]
    torn = Damage("00000000000000393216", 505906, 297, "properties of 0 bytes where 140 are left of the record")
    assert damage == ([torn] if store == "cut_tail" else [])


def test_blank_records_end_their_files(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1024)
    for _ in range(30):
        writer.append(body=b"x" * 100)
    store = writer.write()
    assert len(list_log_files(store)) > 3
    assert walked(store) == (writer.positions, [])


def test_an_unwritten_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(3_000_000))
    assert walked(str(tmp_path)) == ([], [])


def test_damage_is_passed_over_to_the_next_record(writer: StoreWriter) -> None:
    for _ in range(5):
        writer.append()
    writer.overwrite(writer.positions[1], b"\xee" * 50)
    writer.overwrite(writer.positions[3] + 28, bytes(8))
    offsets, damage = walked(writer.write())
    name = f"{0:020d}"
    length = writer.positions[1]
    wrong_offset = f"the record says it lies at 0, not at {writer.positions[3]}"
    assert offsets == [writer.positions[row] for row in (0, 2, 4)]
    assert damage == [
        Damage(name, writer.positions[1], length, "magic 0xEEEEEEEE is not a message's"),
        Damage(name, writer.positions[3], length, wrong_offset),
    ]


def test_a_truncated_tail_is_damage_up_to_its_last_byte(writer: StoreWriter) -> None:
    writer.append()
    cut = writer.append(body=b"x" * 100)
    writer.overwrite(cut + 150, bytes(writer.position - cut - 150))
    offsets, damage = walked(writer.write())
    assert offsets == [0]
    assert [(found.physical_offset, found.length) for found in damage] == [(cut, 150)]


def test_a_file_cut_short_in_its_last_record(writer: StoreWriter) -> None:
    writer.append()
    cut = writer.append()
    store = writer.write()
    path = list_log_files(store)[0].path
    for length in range(cut + 1, writer.position):
        with open(path, "r+b") as file:
            file.truncate(length)
        offsets, damage = walked(store)
        assert offsets == [0]
        assert [found.physical_offset for found in damage] in ([cut], [])


def test_a_stretch_ends_with_the_record_that_begins_in_it(writer: StoreWriter) -> None:
    for _ in range(4):
        writer.append()
    file = list_log_files(writer.write())[0]
    log = LogFile(file.path, file.first_offset)
    pieces = list(read_stretch(log, writer.positions[1], writer.positions[2] + 1))
    assert [piece.spans.starts.tolist() for piece in pieces if not isinstance(piece, Damage)] == [writer.positions[1:3]]


def test_batches_end_at_their_limits(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "BATCH_ROWS", 3)
    for _ in range(8):
        writer.append()
    file = list_log_files(writer.write())[0]
    pieces = read_stretch(LogFile(file.path, file.first_offset), 0, file.size)
    assert [len(piece) for piece in pieces if not isinstance(piece, Damage)] == [3, 3, 2]
    monkeypatch.setattr(walk_module, "BATCH_BYTES", 2 * writer.positions[1])
    pieces = read_stretch(LogFile(file.path, file.first_offset), 0, file.size)
    assert [len(piece) for piece in pieces if not isinstance(piece, Damage)] == [2, 2, 2, 2]


@given(st.integers(0, 700), st.binary(min_size=1, max_size=150))
def test_no_bytes_stop_the_walk_or_hide_later_records(
    tmp_path_factory: pytest.TempPathFactory, position: int, noise: bytes
) -> None:
    writer = StoreWriter(tmp_path_factory.mktemp("noise"), file_size=4096)
    for _ in range(12):
        writer.append()
    writer.overwrite(position, noise)
    offsets, damage = walked(writer.write())
    hit = [start for start in writer.positions if start < position + len(noise) and position < start + 106]
    assert set(writer.positions) - set(hit) <= set(offsets) <= set(writer.positions)
    assert all(found.physical_offset in hit for found in damage)
