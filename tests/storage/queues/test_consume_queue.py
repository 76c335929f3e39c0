"""A queue: entries over several files, fillers, cutting, loading."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from twisted_mq.protocol.layouts.queue_entry import FILLER_ENTRY, iterate_entries, pack_entry
from twisted_mq.storage.files.mapped_file_queue import Truncation
from twisted_mq.storage.files.paths import file_name
from twisted_mq.storage.queues.consume_queue import ConsumeQueue

PER_FILE = 10


@pytest.fixture
def make(tmp_path: Path) -> Callable[[], ConsumeQueue]:
    def make_one() -> ConsumeQueue:
        queue = ConsumeQueue("TopicA", 0, str(tmp_path / "queue"), PER_FILE * 20, 64)
        queue.load()
        return queue

    return make_one


@pytest.fixture
def queue(make: Callable[[], ConsumeQueue]) -> ConsumeQueue:
    return make()


def append(queue: ConsumeQueue, count: int) -> None:
    """Entries of records of 100 bytes, back to back."""
    for _ in range(count):
        if queue.next_offset >= queue.reserved_offset:
            queue.reserve()
        offset = queue.next_offset
        queue.next_offset += 1
        queue.append(offset * 100, 100, offset)


def state(queue: ConsumeQueue) -> tuple[int, int, int, int]:
    return queue.min_offset, queue.max_offset, queue.next_offset, queue.max_physical_offset


def test_entries_go_over_files(queue: ConsumeQueue) -> None:
    append(queue, 25)
    assert state(queue) == (0, 25, 25, 2500)
    assert [queue.entry(offset) for offset in (-1, 0, 9, 10, 24, 25)] == [
        None,
        (0, 100, 0),
        (900, 100, 9),
        (1000, 100, 10),
        (2400, 100, 24),
        None,
    ]


def test_many_entries_at_once_are_those_one_by_one(queue: ConsumeQueue) -> None:
    append(queue, 3)
    queue.reserve(22)
    queue.append_many([number for offset in range(3, 25) for number in (offset * 100, 100, offset)])
    queue.next_offset = queue.max_offset
    assert state(queue) == (0, 25, 25, 2500)
    assert [queue.entry(offset) for offset in range(25)] == [(offset * 100, 100, offset) for offset in range(25)]


def test_entries_of_one_file(queue: ConsumeQueue) -> None:
    append(queue, 25)
    found = [
        [entry[2] for entry in iterate_entries(queue.entries_in_file(offset, count))]
        for offset, count in ((0, 3), (8, 50), (20, 50), (25, 50))
    ]
    assert found == [[0, 1, 2], [8, 9], [20, 21, 22, 23, 24], []]
    assert [queue.next_file_offset(offset) for offset in (0, 9, 10)] == [10, 10, 20]


def test_space_is_reserved_over_a_file_end(queue: ConsumeQueue) -> None:
    queue.reserve(13)
    assert (queue.reserved_offset >= 13, len(queue.files.files), queue.max_offset) == (True, 2, 0)


def test_loading_finds_the_last_entry(queue: ConsumeQueue, make: Callable[[], ConsumeQueue]) -> None:
    append(queue, 25)
    queue.release()
    assert state(make()) == (0, 25, 25, 2500)


@pytest.mark.parametrize("count", [1, 9, 10, 11, 20])
def test_loading_and_going_on(queue: ConsumeQueue, make: Callable[[], ConsumeQueue], count: int) -> None:
    append(queue, count)
    queue.release()
    again = make()
    append(again, 15)
    assert [entry[2] for offset in range(count + 15) if (entry := again.entry(offset))] == list(range(count + 15))


def test_reserved_but_unused_file_is_empty(queue: ConsumeQueue, make: Callable[[], ConsumeQueue]) -> None:
    append(queue, 10)
    queue.reserve()
    queue.release()
    assert state(make()) == (0, 10, 10, 1000)


def test_truncating(queue: ConsumeQueue) -> None:
    append(queue, 25)
    assert queue.truncate(12) == 13
    assert state(queue) == (0, 12, 12, 1200)
    append(queue, 1)
    assert queue.entry(12) == (1200, 100, 12)


def test_truncating_to_nothing(queue: ConsumeQueue) -> None:
    append(queue, 25)
    assert queue.truncate(0) == 25
    assert state(queue) == (0, 0, 0, 0)
    append(queue, 1)
    assert queue.entry(0) == (0, 100, 0)


@pytest.mark.parametrize(("physical_offset", "kept"), [(0, 0), (1, 1), (1200, 12), (1201, 13), (2400, 24), (2500, 25)])
def test_the_first_entry_at_or_behind_a_physical_offset(queue: ConsumeQueue, physical_offset: int, kept: int) -> None:
    append(queue, 25)
    assert queue.first_at_or_behind(physical_offset) == kept


def test_minimum_follows_the_log(queue: ConsumeQueue) -> None:
    append(queue, 25)
    minima = []
    for physical_offset in (0, 1, 1500, 9999):
        queue.correct_min_offset(physical_offset)
        minima.append(queue.min_offset)
    assert minima == [0, 1, 15, 25]
    assert queue.entry(14) is None


def test_queue_that_begins_in_the_middle_is_filled_up(queue: ConsumeQueue, make: Callable[[], ConsumeQueue]) -> None:
    queue.append_at(23, 500, 100, 7)
    queue.correct_min_offset(500)
    assert state(queue) == (23, 24, 24, 600)
    assert bytes(queue.files.files[0].readable[:60]) == FILLER_ENTRY * 3
    assert [file.first_offset for file in queue.files.files] == [400]
    queue.release()
    again = make()
    again.correct_min_offset(500)
    assert state(again) == (23, 24, 24, 600)


def test_lost_messages_are_bridged_by_their_follower(queue: ConsumeQueue) -> None:
    append(queue, 2)
    queue.append_at(5, 700, 100, 9)
    assert [queue.entry(offset) for offset in range(2, 6)] == [(700, 100, 9)] * 4
    assert queue.max_offset == 6
    queue.correct_min_offset(0)
    assert queue.min_offset == 0


def test_taken_offset_starts_the_queue_anew_from_there(queue: ConsumeQueue) -> None:
    append(queue, 15)
    queue.append_at(0, 5000, 100, 1)
    assert (state(queue), queue.entry(0)) == ((0, 1, 1, 5100), (5000, 100, 1))
    queue.append_at(1, 5100, 100, 2)
    assert queue.entry(1) == (5100, 100, 2)


def test_entry_without_space_is_a_defect(queue: ConsumeQueue) -> None:
    with pytest.raises(IndexError, match="entry 0 was not reserved"):
        queue.append(0, 100, 0)


def test_flushing_counts_pages(queue: ConsumeQueue) -> None:
    synced: list[int] = []
    append(queue, 15)
    queue.flush(301, synced.append)
    assert (queue.flushed_offset, len(synced)) == (0, 0)
    queue.flush(300, synced.append)
    assert (queue.flushed_offset, len(synced)) == (15, 2)
    queue.flush(0, synced.append)
    assert len(synced) == 2


def test_destroying_leaves_an_empty_queue(queue: ConsumeQueue, tmp_path: Path) -> None:
    append(queue, 15)
    queue.destroy()
    assert (state(queue), (tmp_path / "queue").exists()) == ((0, 0, 0, 0), False)


def test_rewinding_leaves_the_entries_on_disk(queue: ConsumeQueue) -> None:
    for offset in range(25):
        queue.append_at(offset, offset * 100, 100, 7)
    before = [bytes(file.readable) for file in queue.files.files]
    queue.rewind_to_physical(500)
    assert (queue.max_offset, queue.next_offset, queue.max_physical_offset) == (5, 5, 500)
    assert [bytes(file.readable) for file in queue.files.files] == before
    for offset in range(5, 25):
        queue.append_at(offset, offset * 100, 100, 7)
    assert [bytes(file.readable) for file in queue.files.files] == before
    queue.rewind_to_physical(2400)
    queue.truncate(queue.max_offset)
    assert [entry for _, entry in queue.entries()] == [(offset * 100, 100, 7) for offset in range(24)]
    assert bytes(queue.files.files[-1].readable)[4 * 20 :] == bytes(6 * 20)


def test_an_entry_is_read_without_a_mapping(queue: ConsumeQueue, make: Callable[[], ConsumeQueue]) -> None:
    append(queue, 25)
    assert queue.peek(24) == queue.entry(24) == (2400, 100, 24)
    again = make()
    assert [again.peek(offset) for offset in (-1, 0, 24, 25)] == [None, (0, 100, 0), (2400, 100, 24), None]
    assert [(file.open_view, file._readable) for file in again.files.files] == [(None, None)] * 3


def test_a_load_tells_the_entries_at_both_ends_if_it_has_seen_them(
    queue: ConsumeQueue, tmp_path: Path, make: Callable[[], ConsumeQueue]
) -> None:
    append(queue, 5)
    load = queue.load()
    assert (load.first, load.last, load.truncation) == ((0, 100, 0), (400, 100, 4), Truncation())
    append(queue, 20)
    load = queue.load()
    assert (load.first, load.last, state(queue)) == (None, (2400, 100, 24), (0, 25, 25, 2500))
    queue.truncate(20)
    load = queue.load()
    assert (load.first, load.last, state(queue)) == (None, None, (0, 20, 20, 2000))


def test_entry_that_ends_in_a_hole_of_the_file_counts(tmp_path: Path) -> None:
    """Blocks have no whole number of entries; the last four bytes of this one are zeros, in a block that was never written."""
    entries = b"".join(pack_entry(number * 100, 100, 0) for number in range(205))
    (tmp_path / "queue").mkdir()
    path = tmp_path / "queue" / file_name(0)
    path.write_bytes(entries[:4096])
    os.truncate(path, 400 * 20)
    queue = ConsumeQueue("TopicA", 0, str(tmp_path / "queue"), 400 * 20, 64)
    assert (queue.load().last, state(queue)) == ((20400, 100, 0), (0, 205, 205, 20500))


def test_rewinding_past_the_end_changes_nothing(queue: ConsumeQueue) -> None:
    append(queue, 5)
    assert (queue.rewind_to_physical(500), queue.rewind_to_physical(499)) == (False, False)
    assert queue.rewind_to_physical(400)
    assert state(queue) == (0, 4, 4, 400)


def test_data_after_a_hole_of_the_file_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    path = tmp_path / "queue" / file_name(0)
    path.write_bytes(b"".join(pack_entry(number * 100, 100, 0) for number in range(5)))
    os.truncate(path, 800 * 20)
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"late")
    queue = ConsumeQueue("TopicA", 0, str(tmp_path / "queue"), 800 * 20, 64)
    assert (queue.load().truncation, state(queue)) == (Truncation(cleared_bytes=4), (0, 5, 5, 500))
    assert not any(path.read_bytes()[5 * 20 :])
