"""A batch queue against a plain list, its files cut at every byte, and whole stores with such queues."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.conftest import BATCH_QUEUE_FILE_BYTES, START_MS, OpenFileStore, message, put
from tests.storage.test_batch_queue_contract import TOPIC, consumed, inner_batch, read
from tests.storage.test_retention import EMPTY
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES, BATCH_QUEUE_ENTRY
from twisted_mq.storage.check import check_store
from twisted_mq.storage.interfaces import IsBatchTopic
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.queues.batch_consume_queue import BatchConsumeQueue
from twisted_mq.storage.retention import HOUR_MS

PER_FILE = 4
INDEX = IndexSizes(50, 200)
COUNTS = st.lists(st.integers(1, 5), max_size=14)


def open_queue(directory: str) -> BatchConsumeQueue:
    queue = BatchConsumeQueue(TOPIC, 0, directory, PER_FILE * BATCH_ENTRY_BYTES, 64)
    queue.load()
    return queue


def append(queue: BatchConsumeQueue, counts: list[int]) -> None:
    """Entries of records of 100 bytes, stored 10 ms apart."""
    for count in counts:
        number = queue.max_physical_offset // 100
        queue.reserve()
        queue.expect(queue.next_offset, count, number * 10)
        queue.append(number * 100, 100, number)


def state(queue: BatchConsumeQueue) -> tuple[int, ...]:
    return queue.min_offset, queue.max_offset, queue.next_offset, queue.max_physical_offset


def owners(counts: list[int]) -> list[int]:
    """The number of the record that answers for each offset."""
    return [number for number, count in enumerate(counts) for _ in range(count)]


@settings(max_examples=40, deadline=None)
@given(counts=COUNTS, cut=st.integers(0, 40), more=COUNTS)
def test_a_queue_is_what_a_list_is(counts: list[int], cut: int, more: list[int]) -> None:
    """Appending, looking up, truncating, appending again, and loading."""
    with tempfile.TemporaryDirectory() as directory:
        queue = open_queue(directory)
        append(queue, counts)
        expected = owners(counts)
        assert state(queue) == (0, len(expected), len(expected), len(counts) * 100)
        if cut < len(expected):
            counts = counts[: expected[cut]]
            dropped = queue.truncate(cut)
            assert dropped == len(expected) - sum(counts)
        append(queue, more)
        expected = owners(counts + more)
        for _ in range(2):
            assert state(queue) == (0, len(expected), len(expected), len(counts + more) * 100)
            found = [queue.entry(offset) for offset in range(-1, len(expected) + 1)]
            assert found == [None, *[(number * 100, 100, number) for number in expected], None]
            assert [queue.first_at_or_behind(number * 100) for number in range(len(counts + more) + 1)] == [
                sum((counts + more)[:number]) for number in range(len(counts + more) + 1)
            ]
            queue.flush(0)
            queue = open_queue(directory)


@settings(max_examples=40, deadline=None)
@given(times=st.lists(st.integers(0, 6), min_size=1, max_size=10).map(sorted), wanted=st.integers(-1, 7))
def test_times_are_found_as_apache_finds_them_in_one_file(times: list[int], wanted: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        queue = open_queue(directory)
        for number, time in enumerate(times):
            queue.append_at(number * 2, number * 100, 100, 0, time, 2)
        same = [number for number, time in enumerate(times) if time == wanted]
        younger = [number for number, time in enumerate(times) if time > wanted]
        last = len(times) - 1
        lower = last if wanted >= times[-1] else same[0] if same else younger[0]
        upper = last if wanted >= times[-1] else same[-1] if same else younger[0]
        assert queue.offset_by_time(wanted, upper=False) == lower * 2
        assert queue.offset_by_time(wanted, upper=True) == upper * 2


def test_entries_lie_as_the_layout_says(tmp_path: Path) -> None:
    queue = open_queue(str(tmp_path))
    append(queue, [3, 1])
    first, second = (
        BATCH_QUEUE_ENTRY.build(
            {
                "physical_offset": number * 100,
                "size": 100,
                "tags_code": number,
                "store_time": number * 10,
                "msg_base_offset": base,
                "batch_num": count,
                "compact_offset": -1,
                "reserved": 0,
            }
        )
        for number, base, count in ((0, 0, 3), (1, 3, 1))
    )
    assert (tmp_path / f"{0:020d}").read_bytes() == (first + second).ljust(PER_FILE * BATCH_ENTRY_BYTES, b"\0")


def test_a_queue_may_begin_in_the_middle_and_have_holes(tmp_path: Path) -> None:
    """An offset whose record is lost belongs to the next entry, so that a reader gets on."""
    queue = open_queue(str(tmp_path))
    queue.append_at(100, 1000, 100, 0, 1, 3)
    queue.append_at(110, 1200, 100, 0, 2, 2)
    assert state(queue) == (100, 112, 112, 1300)
    assert [queue.entry(offset) for offset in (99, 102, 103, 111)] == [
        None,
        (1000, 100, 0),
        (1200, 100, 0),
        (1200, 100, 0),
    ]
    assert state(open_queue(str(tmp_path))) == (100, 112, 112, 1300)
    queue.append_at(0, 1300, 100, 0, 3, 2)  # the topic was made anew
    assert state(queue) == (0, 2, 2, 1400)


def test_trimming_forgets_whole_files_and_keeps_offsets(tmp_path: Path) -> None:
    queue = open_queue(str(tmp_path))
    append(queue, [2] * 10)
    assert [os.path.basename(path) for path in queue.trim(500)] == [f"{0:020d}"]
    assert state(queue) == (10, 20, 20, 1000)
    assert [queue.entry(offset) for offset in (9, 10)] == [None, (500, 100, 5)]
    assert len(queue.trim(5000)) == 1
    assert state(queue) == (20, 20, 20, 1000)
    append(queue, [3])
    assert (queue.entry(19), queue.entry(20)) == (None, (1000, 100, 10))


def test_a_flush_puts_the_files_on_disk_that_changed(tmp_path: Path) -> None:
    queue = open_queue(str(tmp_path))
    append(queue, [1] * 6)
    synced: list[int] = []
    queue.flush(6 * BATCH_ENTRY_BYTES + 1, synced.append)
    assert synced == []
    queue.flush(0, synced.append)
    append(queue, [1])
    queue.flush(0, synced.append)
    queue.flush(0, synced.append)
    assert len(synced) == 3


@pytest.mark.parametrize("damage", ["cut", "zeros", "ones"])
def test_every_byte_of_a_small_queue_may_be_where_it_ends(tmp_path: Path, damage: str) -> None:
    """The rest is complete entries that follow each other, and writing continues after them."""
    queue = open_queue(str(tmp_path / "whole"))
    append(queue, [2, 1, 3])
    queue.flush(0)
    data = (tmp_path / "whole" / f"{0:020d}").read_bytes()
    written = 3 * BATCH_ENTRY_BYTES
    for position in range(written + 1):
        directory = tmp_path / f"cut{position}"
        directory.mkdir()
        filler = b"\xff" if damage == "ones" else b"\0"
        kept = data[:position] + filler * (len(data) - position)
        (directory / f"{0:020d}").write_bytes(data[:position] if damage == "cut" else kept)
        again = open_queue(str(directory))
        if damage == "cut":  # a file of a wrong length is not loaded, the queue is built anew
            assert state(again) == (0, 0, 0, 0)
            continue
        whole = position // BATCH_ENTRY_BYTES
        offsets = [0, 2, 3, 6]
        assert again.max_offset in (offsets[whole], again.max_offset if position % BATCH_ENTRY_BYTES else -1)
        assert [entry[:2] for _, entry in again.entries()][:whole] == [(number * 100, 100) for number in range(whole)]
        append(again, [4])
        assert again.max_offset == again.next_offset
        again.release()


# whole stores


def counted(store: FileMessageStore) -> list[tuple[int, bytes]]:
    """(queue offset, body) of all messages, by as many pulls as it takes."""
    found: list[tuple[int, bytes]] = []
    offset = store.min_offset_in_queue(TOPIC, 0)
    while offset < store.max_offset_in_queue(TOPIC, 0):
        result = read(store, offset)
        found += consumed(result)
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
    return found


def is_batch_topic(topic: str) -> bool:
    return topic == TOPIC


def batch_store(
    open_store: OpenFileStore, root: Path, is_batch_topic: IsBatchTopic = is_batch_topic
) -> FileMessageStore:
    """An open store with ten batches of three messages and ten single ones, and a simple topic between them."""
    store = open_store(root, is_batch_topic=is_batch_topic)
    for number in range(10):
        texts = [b"%d %d" % (number, place) for place in range(3)]
        put(store, inner_batch(*texts), message(TOPIC, body=b"%d single" % number), message("TopicA"))
    return store


ALL = list(
    enumerate(
        text
        for number in range(10)
        for text in (*[b"%d %d" % (number, place) for place in range(3)], b"%d single" % number)
    )
)


def test_a_store_is_the_same_after_a_clean_stop(open_store: OpenFileStore, tmp_path: Path) -> None:
    """If the topics are not known, the directories decide."""
    known = {TOPIC: True, "TopicA": False}
    store = batch_store(open_store, tmp_path / "store", known.get)
    assert counted(store) == ALL
    assert os.listdir(tmp_path / "store" / "batchconsumequeue") == [TOPIC]
    assert os.listdir(tmp_path / "store" / "consumequeue") == ["TopicA"]
    store.close()
    assert check_store(str(tmp_path / "store"), index_sizes=INDEX) == []
    known.clear()
    store.start()
    assert (counted(store), store.recovery_report.actions) == (ALL, [])
    assert put(store, inner_batch(b"x", b"y"))[0].queue_offset == 40


def test_a_killed_store_has_all_its_batches(open_store: OpenFileStore, tmp_path: Path) -> None:
    batch_store(open_store, tmp_path / "living")
    shutil.copytree(tmp_path / "living", tmp_path / "killed")
    store = open_store(tmp_path / "killed")
    assert counted(store) == ALL
    assert put(store, inner_batch(b"x", b"y"))[0].queue_offset == 40


DAMAGED_BYTES = {
    "fewer messages": 37,
    "many messages": 36,
    "later offset": 35,
    "earlier offset": BATCH_ENTRY_BYTES + 35,
    "much later offset": BATCH_ENTRY_BYTES + 28,
}
"""Results of a flipped bit in the file's first entry, of three messages, or its second, at an odd offset."""


@pytest.mark.parametrize(
    ("lost", "clean"),
    [
        ("directory", False),
        ("tail", False),
        *[(lost, clean) for lost in ("file", "short", *DAMAGED_BYTES) for clean in (True, False)],
    ],
)
def test_what_is_lost_of_a_queue_comes_from_the_log(
    open_store: OpenFileStore, tmp_path: Path, lost: str, clean: bool
) -> None:
    """But a clean stop promises that all entries are there: what the queue lacks counts as deleted, as in simple ones."""
    store = batch_store(open_store, tmp_path / "living")
    if clean:
        store.close()
    root = tmp_path / "damaged"
    shutil.copytree(tmp_path / "living", root)
    files = sorted((root / "batchconsumequeue" / TOPIC / "0").iterdir())
    assert [file.stat().st_size for file in files] == [BATCH_QUEUE_FILE_BYTES] * 5
    data = bytearray(files[4].read_bytes())
    match lost:
        case "directory":
            shutil.rmtree(root / "batchconsumequeue")
        case "file":
            files[2].unlink()
        case "tail":
            files[4].write_bytes(data[:BATCH_ENTRY_BYTES].ljust(BATCH_QUEUE_FILE_BYTES, b"\0"))
        case "short":
            files[4].write_bytes(b"short")
        case _:
            data[DAMAGED_BYTES[lost]] ^= 1
            files[4].write_bytes(data)
    again = open_store(root, is_batch_topic=is_batch_topic)
    assert counted(again) == ALL
    assert again.recovery_report.entries_written > 0 or lost == "fewer messages"


def test_a_log_that_was_cut_takes_the_batch_with_it(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = batch_store(open_store, tmp_path / "living")
    last = store.queue_entries(TOPIC, 0, 36, 1)[0]
    shutil.copytree(tmp_path / "living", tmp_path / "cut")
    file, position = divmod(last[0] + last[1] - 1, 4096)
    path = tmp_path / "cut" / "commitlog" / f"{file * 4096:020d}"
    data = path.read_bytes()
    path.write_bytes(data[:position].ljust(4096, b"\0"))
    again = open_store(tmp_path / "cut")
    assert counted(again) == ALL[:36]
    assert put(again, inner_batch(b"x", b"y"))[0].queue_offset == 36


def test_a_queue_of_the_wrong_kind_is_built_anew(open_store: OpenFileStore, tmp_path: Path) -> None:
    """As on a slave that learnt only after the first messages which kind of queues the topic has."""
    known: dict[str, bool] = {}
    store = open_store(tmp_path / "store", is_batch_topic=known.get)
    put(store, *[message(TOPIC, body=bytes([number])) for number in range(3)])
    store.close()
    known[TOPIC] = True
    store.start()
    assert [action.done for action in store.recovery_report.actions] == [
        f"{TOPIC} has queues of another kind; the queue is rebuilt from the log"
    ]
    assert counted(store) == [(number, bytes([number])) for number in range(3)]
    assert put(store, inner_batch(b"x", b"y"))[0].queue_offset == 3
    assert os.listdir(tmp_path / "store" / "consumequeue") == []
    store.close()
    known[TOPIC] = False
    store.start()
    assert os.listdir(tmp_path / "store" / "consumequeue") == [TOPIC]
    store.delete_topics({TOPIC})


def test_expired_files_of_the_log_take_those_of_the_queue_with_them(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = batch_store(open_store, tmp_path / "store")
    log = sorted((tmp_path / "store" / "commitlog").iterdir())
    os.utime(log[0], (0, 0))
    store.retention.delete_soon()
    for path in store.retention.expire_log(START_MS + 100 * HOUR_MS, 12, EMPTY):
        os.unlink(path)
    for paths in store.retention.trim():
        for path in paths:
            os.unlink(path)
    first = store.min_offset_in_queue(TOPIC, 0)
    assert 0 < first < 40
    assert counted(store) == ALL[first:]
    assert f"{0:020d}" not in os.listdir(tmp_path / "store" / "batchconsumequeue" / TOPIC / "0")
    store.close()
    store.start()
    assert (store.min_offset_in_queue(TOPIC, 0), counted(store)) == (first, ALL[first:])


def test_damage_of_an_entry_is_named(open_store: OpenFileStore, tmp_path: Path) -> None:
    root = tmp_path / "store"
    batch_store(open_store, root).close()
    path = root / "batchconsumequeue" / TOPIC / "0" / f"{0:020d}"
    sound = path.read_bytes()
    found = []
    for position in range(38):  # up to the count; what follows says nothing
        data = bytearray(sound)
        data[position] ^= 1
        path.write_bytes(data)
        found.append([problem.path for problem in check_store(str(root), index_sizes=INDEX)])
    path.write_bytes(sound)
    directory = str(path.parent)
    assert all(found)
    assert {one for problems in found for one in problems} <= {directory, f"{TOPIC}/0"}
