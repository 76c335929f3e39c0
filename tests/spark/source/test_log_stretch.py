"""The walk finds every intact record, and names what lies between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.stores import StoreWriter, everything, opened
from tests.support.captures import STORES, expected_messages
from tests.support.forms import each_form as each_form
from twisted_mq.spark.source import log_stretch as stretch_module
from twisted_mq.spark.source.log_stretch import Damage, Missing, read_part, read_stretch
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.columns.record_columns import RecordColumns


def walked(store: str) -> tuple[list[int], list[Damage]]:
    """Physical offsets of all records, and all damage."""
    pieces = list(everything(store))
    records = [piece for piece in pieces if isinstance(piece, RecordColumns)]
    offsets = [offset for piece in records for offset in piece.physical_offsets.tolist()]
    return offsets, [piece for piece in pieces if isinstance(piece, Damage)]


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
    assert len(list_log_files(Store(store))) > 3
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
    wrong_offset = f"the record says it is at 0, not at {writer.positions[3]}"
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
    path = list_log_files(Store(store))[0].path
    for length in range(cut + 1, writer.position):
        with open(path, "r+b") as file:
            file.truncate(length)
        offsets, damage = walked(store)
        assert offsets == [0]
        assert [found.physical_offset for found in damage] in ([cut], [])


def lengths(pieces: Iterator[RecordColumns | Damage]) -> list[int]:
    return [len(piece) for piece in pieces if isinstance(piece, RecordColumns)]


def test_a_stretch_ends_with_the_record_that_begins_in_it(writer: StoreWriter) -> None:
    for _ in range(4):
        writer.append()
    pieces = list(read_stretch(opened(writer.write()), writer.positions[1], writer.positions[2] + 1))
    assert [piece.physical_offsets.tolist() for piece in pieces if isinstance(piece, RecordColumns)] == [
        writer.positions[1:3]
    ]


def test_batches_end_at_their_limits(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(8):
        writer.append()
    log = opened(writer.write())
    assert lengths(read_stretch(log, 0, log.size)) == [8]
    monkeypatch.setattr(stretch_module, "WINDOW_BYTES", 2 * writer.positions[1] + 50)
    assert lengths(read_stretch(log, 0, log.size)) == [2, 2, 2, 2]


@pytest.mark.parametrize("window", [90, 101, 102, 333, 5000])
def test_records_are_found_however_windows_cut_them(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(stretch_module, "WINDOW_BYTES", window)
    for number in range(60):
        writer.append(body=b"x" * (number * 41 % 700))
    assert walked(writer.write()) == (writer.positions, [])


def test_a_record_completed_while_the_next_one_is_sought_is_no_damage(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live broker puts the bytes there between the proof that fails and the search behind it."""
    for _ in range(5):
        writer.append()
    store = writer.write()
    path = list_log_files(Store(store))[0].path
    third = writer.positions[3]
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[:third] + bytes(len(content) - third))
    search = OpenLog.next_proven

    def complete_and_search(log: OpenLog, position: int, end: int) -> int | None:
        Path(path).write_bytes(content)
        log.look_again()
        return search(log, position, end)

    monkeypatch.setattr(OpenLog, "next_proven", complete_and_search)
    assert walked(store) == (writer.positions, [])


def test_a_file_that_is_gone_is_named_with_what_is_left(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1024)
    for _ in range(30):
        writer.append(body=b"x" * 100)
    store = Store(writer.write(), "broker-a")
    files = list_log_files(store)
    Path(files[0].path).unlink()
    pieces = list(read_part(StoreRange(store, files, 100, files[-1].end, files[-1].end)))
    (missing,) = [piece for piece in pieces if isinstance(piece, Missing)]
    assert missing == Missing(store, files[0].path, 100, 1024, 1024)
    assert str(missing) == (
        f"broker broker-a, store {store.name}: file {files[0].path} was deleted since the read was planned: "
        "physical offsets 100 to 1024 wanted, the log from 1024 on found"
    )


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
