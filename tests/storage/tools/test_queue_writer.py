"""Entries of a rebuilt queue, also with offsets out of order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from twisted_mq.protocol.layouts.queue_entry import FILLER_ENTRY, iterate_entries, pack_entry
from twisted_mq.storage.tools.queue_writer import QueueWriter


def written(tmp_path: Path, *batches: list[tuple[int, int]]) -> tuple[QueueWriter, dict[int, int]]:
    """Feed (queue offset, physical offset) rows; returns the writer and queue offset to physical offset on disk."""
    writer = QueueWriter(str(tmp_path / "queue"), 200)
    for batch in batches:
        writer.add(np.array([(offset, physical, 100, 7) for offset, physical in batch], np.int64))
    writer.finish()
    entries = {}
    for path in (tmp_path / "queue").iterdir():
        for number, (physical, size, _) in enumerate(iterate_entries(path.read_bytes())):
            if size == 100:
                entries[int(path.name) // 20 + number] = physical
    return writer, dict(sorted(entries.items()))


def rows(begin: int, end: int, physical: int = 0) -> list[tuple[int, int]]:
    return [(offset, physical + offset * 100) for offset in range(begin, end)]


def test_offsets_in_order_over_several_files_and_batches(tmp_path: Path) -> None:
    writer, entries = written(tmp_path, rows(0, 7), rows(7, 25))
    assert entries == dict(rows(0, 25))
    assert (writer.begin, writer.end, writer.bridges, writer.left_out) == (0, 25, 0, [])
    assert sorted(path.name for path in (tmp_path / "queue").iterdir()) == [f"{n:020d}" for n in (0, 200, 400)]


def test_queue_that_begins_in_the_middle_gets_fillers(tmp_path: Path) -> None:
    writer, entries = written(tmp_path, rows(13, 15))
    assert (entries, writer.begin, writer.end) == (dict(rows(13, 15)), 10, 15)
    assert (tmp_path / "queue" / f"{200:020d}").read_bytes()[:60] == FILLER_ENTRY * 3


def test_lost_messages_are_bridged_by_their_follower(tmp_path: Path) -> None:
    writer, entries = written(tmp_path, rows(0, 3), rows(5, 7))
    assert entries == {**dict(rows(0, 3)), 3: 500, 4: 500, **dict(rows(5, 7))}
    assert writer.bridges == 2


def test_topic_made_anew_replaces_the_older_entries(tmp_path: Path) -> None:
    writer, entries = written(tmp_path, rows(0, 25), rows(0, 3, 10_000))
    assert (entries, writer.end) == (dict(rows(0, 3, 10_000)), 3)
    assert [path.name for path in (tmp_path / "queue").iterdir()] == [f"{0:020d}"]
    content = (tmp_path / "queue" / f"{0:020d}").read_bytes()
    assert content == b"".join(pack_entry(10_000 + n * 100, 100, 7) for n in range(3)) + bytes(140)


@pytest.mark.parametrize("batches", [[[(0, 9000)]], [[(0, 9000)], [(1, 9100)]]], ids=["one", "two in two batches"])
def test_topic_made_anew_with_few_messages(tmp_path: Path, batches: list[list[tuple[int, int]]]) -> None:
    _, entries = written(tmp_path, rows(0, 12), *batches)
    assert entries == {offset: physical for batch in batches for offset, physical in batch}


def test_single_record_out_of_order_is_left_out(tmp_path: Path) -> None:
    writer, entries = written(tmp_path, rows(0, 8), [(2, 800)], rows(9, 12))
    assert entries == {**dict(rows(0, 8)), 8: 900, **dict(rows(9, 12))}
    assert writer.left_out == [(2, 800, 100, 7)]


def test_single_record_far_ahead_is_left_out(tmp_path: Path) -> None:
    writer, entries = written(tmp_path, rows(0, 8), [(1 << 40, 800)], rows(9, 12))
    assert entries == {**dict(rows(0, 8)), 8: 900, **dict(rows(9, 12))}
    assert writer.left_out == [(1 << 40, 800, 100, 7)]


def test_without_a_directory_only_counts(tmp_path: Path) -> None:
    writer = QueueWriter(None, 200)
    writer.add(np.array([(offset, offset * 100, 100, 0) for offset in range(30)], np.int64))
    writer.finish()
    assert (writer.begin, writer.end, list(tmp_path.iterdir())) == (0, 30, [])
