"""Pulls at the limits that the contract tests leave out: memory and disk, removed records, fillers, long scans."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.conftest import OpenFileStore, message, put, tagged
from twisted_mq.protocol.layouts.queue_entry import ENTRY, FILLER_ENTRY
from twisted_mq.storage.interfaces import GetResult, GetStatus
from twisted_mq.storage.queues.queue_reader import QueueReader, matches

RECORD = 91 + 6 + 100
LARGE = {"mapped_file_size_consume_queue": 20_000, "mapped_file_size_commit_log": 1 << 20}


def brief(result: GetResult) -> tuple[Any, ...]:
    return result.status, result.next_begin_offset, len(result.records), result.size_bytes


def fill(store: Any, count: int, **fields: Any) -> None:
    put(store, *[message(body=bytes(100), **fields) for _ in range(count)])


def test_pull_from_memory_has_its_limits(open_store: OpenFileStore) -> None:
    store = open_store(**LARGE)
    fill(store, 50)
    assert brief(store.get_message("TopicA", 0, 0, 100, 1 << 20, None)) == (GetStatus.FOUND, 32, 32, 32 * RECORD)
    limited = open_store(
        Path(store.config.store_path_root_dir + "2"), **LARGE, max_transfer_bytes_on_message_in_memory=999
    )
    fill(limited, 50)
    assert brief(limited.get_message("TopicA", 0, 0, 100, 1 << 20, None)) == (GetStatus.FOUND, 5, 5, 5 * RECORD)


def test_pull_from_disk_has_its_own_limits_and_points_to_the_slave(open_store: OpenFileStore) -> None:
    store = open_store(**LARGE, physical_memory=10 * RECORD, access_message_in_memory_max_ratio=100)
    fill(store, 50)
    cold = store.get_message("TopicA", 0, 0, 100, 1 << 20, None)
    assert (brief(cold), cold.suggest_pulling_from_slave) == ((GetStatus.FOUND, 8, 8, 8 * RECORD), True)
    # from the ninth message on the entries are hot, so the limits are those for memory
    border = store.get_message("TopicA", 0, 35, 100, 1 << 20, None)
    assert (brief(border), border.suggest_pulling_from_slave) == ((GetStatus.FOUND, 50, 15, 15 * RECORD), False)
    hot = store.get_message("TopicA", 0, 40, 100, 1 << 20, None)
    assert (brief(hot), hot.suggest_pulling_from_slave) == ((GetStatus.FOUND, 50, 10, 10 * RECORD), False)
    assert [store.is_in_memory("TopicA", 0, offset) for offset in (39, 40)] == [False, True]


def test_bytes_from_disk_are_limited(open_store: OpenFileStore) -> None:
    store = open_store(**LARGE, physical_memory=1, max_transfer_bytes_on_message_in_disk=3 * RECORD)
    fill(store, 50)
    assert brief(store.get_message("TopicA", 0, 0, 100, 1 << 20, None)) == (GetStatus.FOUND, 3, 3, 3 * RECORD)


def test_scan_for_tags_ends_after_800_entries(open_store: OpenFileStore) -> None:
    store = open_store(**LARGE)
    fill(store, 900)
    assert brief(store.get_message("TopicA", 0, 0, 32, 1 << 20, {5})) == (GetStatus.NO_MATCHED_MESSAGE, 800, 0, 0)
    assert brief(store.get_message("TopicA", 0, 0, 850, 1 << 20, {5})) == (GetStatus.NO_MATCHED_MESSAGE, 850, 0, 0)


def test_scan_for_tags_ends_after_4096_entries_whatever_is_asked_for(open_store: OpenFileStore) -> None:
    store = open_store(mapped_file_size_consume_queue=100_000, mapped_file_size_commit_log=1 << 20)
    fill(store, 4200)
    most = store.get_message("TopicA", 0, 0, 2**31 - 1, 1 << 20, {5})
    assert brief(most) == (GetStatus.NO_MATCHED_MESSAGE, 4096, 0, 0)


def test_scan_through_records_ends_when_its_time_is_up(open_store: OpenFileStore) -> None:
    """As with a long expression or with many properties; the reader goes on behind what was tested."""
    clock = [0.0]
    store = open_store(**LARGE, keywords={"monotonic": lambda: clock[0]})
    fill(store, 50)

    def refused(record: memoryview | bytes) -> bool:
        clock[0] += 0.0021
        return False

    assert brief(store.get_message("TopicA", 0, 0, 32, 1 << 20, None, refused)) == (
        GetStatus.NO_MATCHED_MESSAGE, 10, 0, 0,
    )  # fmt: skip
    assert brief(store.get_message("TopicA", 0, 45, 32, 1 << 20, None, refused)) == (
        GetStatus.NO_MATCHED_MESSAGE, 50, 0, 0,
    )  # fmt: skip


def test_records_that_are_gone_are_passed_over(open_store: OpenFileStore) -> None:
    """The queue still has entries of a log file that is deleted: all of that file are skipped."""
    store = open_store()
    fill(store, 45)
    gone = store._log.files.files.pop(0)
    assert brief(store.get_message("TopicA", 0, 5, 32, 1 << 20, None)) == (GetStatus.MESSAGE_WAS_REMOVING, 10, 0, 0)
    assert brief(store.get_message("TopicA", 0, 17, 32, 1 << 20, None)) == (GetStatus.MESSAGE_WAS_REMOVING, 20, 0, 0)
    store._log.files.files.insert(0, gone)


def test_first_entries_gone_and_the_next_ones_found(open_store: OpenFileStore) -> None:
    store = open_store(mapped_file_size_consume_queue=2000)
    fill(store, 45)
    gone = store._log.files.files.pop(0)
    per_file = 4096 // RECORD
    assert brief(store.get_message("TopicA", 0, 5, 3, 1 << 20, None)) == (GetStatus.FOUND, per_file + 3, 3, 3 * RECORD)
    store._log.files.files.insert(0, gone)


def test_fillers_are_passed_over_one_by_one(open_store: OpenFileStore) -> None:
    store = open_store()
    fill(store, 4)
    (queue,) = store._queues
    right = bytes(queue.files.files[0].view[20:60])
    queue.files.files[0].view[20:60] = FILLER_ENTRY * 2
    assert brief(store.get_message("TopicA", 0, 1, 32, 1 << 20, None)) == (GetStatus.FOUND, 4, 1, RECORD)
    queue.files.files[0].view[20:60] = right


def test_queue_file_that_is_gone_sends_the_reader_to_the_next(open_store: OpenFileStore) -> None:
    store = open_store()
    fill(store, 25)
    (queue,) = store._queues
    files, queue.files.files = queue.files.files, []
    assert brief(store.get_message("TopicA", 0, 3, 32, 1 << 20, None)) == (GetStatus.OFFSET_FOUND_NULL, 10, 0, 0)
    queue.files.files = files


@pytest.mark.parametrize(
    ("tags_code", "wanted", "expected"),
    [
        pytest.param(5, None, True, id="all"),
        pytest.param(5, {5}, True, id="equal"),
        pytest.param(5, {6}, False, id="other"),
        pytest.param(-5, {-5}, True, id="negative"),
        pytest.param((1 << 40) + 5, {5}, True, id="low word"),
        pytest.param((1 << 40) + (1 << 32) - 5, {-5}, True, id="negative low word"),
        pytest.param(5, set(), False, id="none"),
    ],
)
def test_only_the_low_word_of_a_tags_code_counts(tags_code: int, wanted: set[int] | None, expected: bool) -> None:
    assert matches(tags_code, wanted) is expected


def test_entry_beyond_the_log_has_no_time(open_store: OpenFileStore) -> None:
    store = open_store()
    fill(store, 1)
    (queue,) = store._queues
    right = bytes(queue.files.files[0].view[:20])
    ENTRY.pack_into(queue.files.files[0].view, 0, 1 << 30, 100, 0)
    assert store.store_timestamp("TopicA", 0, 0) == -1
    queue.files.files[0].view[:20] = right


KINDS = [
    pytest.param(LARGE, id="hot"),
    pytest.param(
        {**LARGE, "physical_memory": 20 * RECORD, "access_message_in_memory_max_ratio": 100}, id="a part is cold"
    ),
    pytest.param({"mapped_file_size_consume_queue": 20_000}, id="many small files"),
    pytest.param({**LARGE, "max_transfer_bytes_on_message_in_memory": 4 * RECORD}, id="few bytes"),
    pytest.param({**LARGE, "transient_store_pool_enable": True}, id="transient pool"),
]


@pytest.fixture
def by_columns(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """The number of reads that chose their entries in columns, without and with tags."""
    calls: Counter[bool] = Counter()

    def fill_columns(self: QueueReader, *arguments: Any) -> int | None:
        last = in_columns(self, *arguments)
        calls[arguments[4] is not None] += last is not None
        return last

    in_columns = QueueReader._fill_columns
    monkeypatch.setattr(QueueReader, "_fill_columns", fill_columns)
    return calls


def is_read_as_one_by_one(store: Any, *pull: Any) -> None:
    plain = store.get_message("TopicA", 0, *pull, lambda record: True)
    found = store.get_message("TopicA", 0, *pull)
    assert [*map(bytes, found.records)] == [*map(bytes, plain.records)], pull
    assert shown(found) == shown(plain), pull
    joined = store.get_message("TopicA", 0, *pull, joined=True)
    assert b"".join(joined.records) == b"".join(plain.records), pull
    assert (joined.message_count or len(joined.records)) == len(plain.records), pull
    joined.records = found.records
    assert shown(joined) == shown(plain), pull


@pytest.mark.parametrize("kind", KINDS)
def test_records_read_together_are_those_read_one_by_one(
    open_store: OpenFileStore, kind: dict[str, Any], by_columns: Counter[bool]
) -> None:
    store = open_store(**kind)
    for _ in range(20):
        put(store, *[tagged(tags, ord(tags), body=bytes(94)) for tags in "aab"])
    store._log.commit()
    store.dispatch()
    for pull in itertools.product(
        range(0, 60, 2), (-1, 0, 1, 2, 32, 40), (0, 3 * RECORD, 1 << 20), (None, {97}, {97, 98}, {9}, set())
    ):
        is_read_as_one_by_one(store, *pull)
    assert min(by_columns[False], by_columns[True]) > 30


@pytest.mark.parametrize("kind", KINDS)
def test_records_of_any_length_tags_and_place_are_read_as_one_by_one(
    open_store: OpenFileStore, kind: dict[str, Any], by_columns: Counter[bool]
) -> None:
    codes = st.sampled_from([97, 98, -97, (1 << 40) + 97, (1 << 40) + (1 << 32) - 97, -(1 << 40) + 98])
    entries = st.tuples(codes, st.integers(0, 300), st.sampled_from([0, 0, 0, 1]))
    pulls = st.tuples(
        st.integers(0, 60), st.integers(0, 40), st.integers(0, 40 * RECORD) | st.just(1 << 20),
        st.none() | st.frozensets(st.sampled_from([97, 98, -97, 5]), max_size=4) | st.just(frozenset(range(90, 110))),
    )  # fmt: skip
    folders = itertools.count()

    @settings(max_examples=25, deadline=None)
    @given(st.lists(entries, min_size=30, max_size=60), st.lists(pulls, min_size=10, max_size=30))
    def check(sent: list[tuple[int, int, int]], asked: list[tuple[Any, ...]]) -> None:
        store = open_store(Path(f"{folder}-{next(folders)}"), **kind)
        for code, length, others in sent:
            put(store, tagged("t", code, body=bytes(length)), *[message("TopicB")] * others)
        store._log.commit()
        store.dispatch()
        for pull in asked:
            is_read_as_one_by_one(store, *pull)
        store.close()  # unchecked: the codes are not those of the tags

    folder = open_store().config.store_path_root_dir
    check()
    assert sum(by_columns.values())


def test_neighbours_in_the_log_come_as_one_view_to_those_who_ask(open_store: OpenFileStore) -> None:
    store = open_store(**LARGE)
    fill(store, 3)
    put(store, message("TopicB"))
    fill(store, 1)
    whole = store.get_message("TopicA", 0, 0, 3, 1 << 20, None, joined=True)
    assert ([len(one) for one in whole.records], whole.message_count) == ([3 * RECORD], 3)
    apart = store.get_message("TopicA", 0, 0, 4, 1 << 20, None, joined=True)
    assert ([len(one) for one in apart.records], apart.message_count) == ([RECORD] * 4, 4)
    assert len(store.get_message("TopicA", 0, 0, 3, 1 << 20, None).records) == 3


@pytest.mark.parametrize(
    ("offsets", "sizes"),
    [
        pytest.param((0, 5), (5, -5), id="negative size at the end"),
        pytest.param((10, 5), (-5, 20), id="negative size first"),
        pytest.param((0, 150), (150, 60), id="past the end"),
        pytest.param((-5, 0), (5, 5), id="before the log"),
        pytest.param((0, 10), (10, 10**10), id="far past the end"),
    ],
)
def test_damaged_places_are_not_read_together(
    open_store: OpenFileStore, offsets: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    store = open_store()
    fill(store, 1)
    assert store._log.max_offset == RECORD
    assert store._log.read_many(offsets, sizes) is None
    assert store._log.read_many(offsets, sizes, joined=True) is None


def shown(result: GetResult) -> tuple[Any, ...]:
    return (*brief(result), result.min_offset, result.max_offset, result.suggest_pulling_from_slave)
