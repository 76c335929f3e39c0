"""Batch queues with `mq store`: verified, rebuilt, measured."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.storage.conftest import BATCH_QUEUE_FILE_BYTES, OpenFileStore, message, put
from tests.storage.queues.test_batch_consume_queue import ALL, batch_store, counted, is_batch_topic
from tests.storage.test_batch_queue_contract import TOPIC, inner_batch
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES
from twisted_mq.storage.check import check_store
from twisted_mq.storage.tools.backup import back_up, restore
from twisted_mq.storage.tools.batch_queues import BatchQueueWriter
from twisted_mq.storage.tools.rebuild import rebuild
from twisted_mq.storage.tools.repair import repair
from twisted_mq.storage.tools.sizes import measure
from twisted_mq.storage.tools.verify import verify

INDEX = IndexSizes(50, 200)
DIRECTORY = f"batchconsumequeue/{TOPIC}/0"


@pytest.fixture
def root(open_store: OpenFileStore, tmp_path: Path) -> Path:
    """A closed store of ten batches of three messages, ten single ones, and ten of a simple topic."""
    batch_store(open_store, tmp_path / "store").close()
    return tmp_path / "store"


def queue_files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / DIRECTORY).iterdir())}


def named(root: Path) -> list[str]:
    return [str(one).replace(f"{root}/", "") for one in verify(str(root)).findings]


def topics_file(root: Path, queue_type: str) -> None:
    table = {TOPIC: {"topicName": TOPIC, "attributes": {"queue.type": queue_type}}, "TopicA": {"topicName": "TopicA"}}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table, "dataVersion": {}}))


def test_verify_counts_messages_and_entries(root: Path) -> None:
    report = verify(str(root))
    assert (report.findings, report.messages, report.entries, report.queues, report.topics) == ([], 50, 30, 2, 2)
    assert report.queue_ends[TOPIC, 0] == 40


def test_verify_is_content_with_a_store_in_use(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = batch_store(open_store, tmp_path / "store")
    report = verify(str(tmp_path / "store"))
    assert (report.findings, report.in_use) == ([], True)
    put(store, inner_batch(b"x", b"y"))


def test_every_byte_of_an_entry_is_verified(root: Path) -> None:
    path = root / DIRECTORY / f"{0:020d}"
    sound = path.read_bytes()
    for position in range(BATCH_ENTRY_BYTES, BATCH_ENTRY_BYTES + 38):
        data = bytearray(sound)
        data[position] ^= 1
        path.write_bytes(data)
        assert named(root), position
    path.write_bytes(sound)
    assert named(root) == []


def test_a_lost_queue_is_named_and_made_anew(root: Path) -> None:
    before = queue_files(root)
    topics_file(root, "BatchCQ")
    shutil.rmtree(root / "batchconsumequeue")
    assert len(named(root)) > 0
    report = rebuild(str(root), apply=True, name="lost")
    assert (report.queues, report.entries, report.left_out) == (2, 30, [])
    assert b"".join(queue_files(root).values()).rstrip(b"\0") == b"".join(before.values()).rstrip(b"\0")
    assert (named(root), check_store(str(root), index_sizes=INDEX)) == ([], [])


def test_a_rebuild_writes_the_same_files_again(root: Path) -> None:
    before = queue_files(root)
    assert set(map(len, before.values())) == {BATCH_QUEUE_FILE_BYTES}
    assert rebuild(str(root)).entries == 30
    rebuild(str(root), apply=True, name="again")
    assert queue_files(root) == before
    assert (root / "damaged" / "again" / DIRECTORY.removeprefix("/")).is_dir()


def test_a_damaged_entry_is_repaired(root: Path) -> None:
    before = queue_files(root)
    path = root / DIRECTORY / f"{0:020d}"
    data = bytearray(before[path.name])
    data[37] = 9
    path.write_bytes(data)
    plan = repair(str(root), name="mended")
    assert plan.rebuild_queues
    assert queue_files(root) == before


def test_a_queue_of_the_wrong_kind_is_named_and_replaced(root: Path) -> None:
    topics_file(root, "SimpleCQ")
    assert named(root) == [f"{DIRECTORY} at 0: topics.json gives {TOPIC} queues of another kind"]
    topics_file(root, "BatchCQ")
    assert named(root) == []
    (root / "consumequeue" / "TopicA").rename(root / "consumequeue" / "unused")
    shutil.copytree(root / "consumequeue" / "unused", root / "consumequeue" / TOPIC)
    assert any("another kind" in one for one in named(root))
    rebuild(str(root), apply=True, name="kinds")
    assert sorted(path.name for path in (root / "consumequeue").iterdir()) == ["TopicA"]
    assert named(root) == []


@pytest.mark.parametrize("table", [True, False], ids=["with a table of topics", "by the directories"])
def test_a_copy_of_a_store_that_is_written_to_has_its_batches_and_takes_more(
    open_store: OpenFileStore, tmp_path: Path, table: bool
) -> None:
    live, copy, again = (tmp_path / name for name in ("store", "copy", "again"))
    store = batch_store(open_store, live)
    if table:
        topics_file(live, "BatchCQ")
    made = back_up(str(live), str(copy), None, 0)
    put(store, inner_batch(b"too", b"late"))
    store.close()
    restored = restore(str(copy), str(again))
    assert (restored.manifest, restored.found.messages, restored.found.entries) == (made.manifest, 50, 30)
    before = (live / DIRECTORY / f"{0:020d}").read_bytes()
    assert (again / DIRECTORY / f"{0:020d}").read_bytes() == before
    store = open_store(again, is_batch_topic=is_batch_topic)
    assert counted(store) == ALL
    put(store, inner_batch(b"more", b"and more"))
    assert counted(store) == [*ALL, (40, b"more"), (41, b"and more")]
    assert store.recovery_report.actions == []


def test_sizes_count_messages_and_queue_bytes(root: Path) -> None:
    size = measure(str(root)).topics[TOPIC]
    assert (size.messages, size.queue_bytes) == (40, 5 * BATCH_QUEUE_FILE_BYTES)
    assert size.live_bytes == size.log_bytes > 0


def test_a_topic_made_anew_has_only_its_new_messages(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", is_batch_topic=is_batch_topic)
    put(store, inner_batch(b"old", b"old"), inner_batch(b"old"), message(TOPIC))
    store.delete_topics({TOPIC})
    put(store, inner_batch(b"new", b"new", b"new"), inner_batch(b"new"))
    store.close()
    before = queue_files(tmp_path / "store")
    assert named(tmp_path / "store") == []
    rebuild(str(tmp_path / "store"), apply=True, name="anew")
    assert queue_files(tmp_path / "store") == before


Row = tuple[int, int, int, int, int, int]


def row(base: int, count: int, physical: int) -> Row:
    return base, physical, 100, 0, 5, count


@pytest.mark.parametrize(
    ("rows", "bases", "left_out"),
    [
        pytest.param([row(7, 2, 0), row(9, 1, 100)], [7, 9], 0, id="begins in the middle"),
        pytest.param([row(0, 2, 0), row(9, 1, 100)], [0, 9], 0, id="hole"),
        pytest.param([row(0, 2, 0), row(1 << 40, 1, 100), row(2, 1, 200)], [0, 2], 1, id="damaged upwards"),
        pytest.param([row(0, 2, 0), row(1, 1, 100), row(3, 1, 200)], [0, 3], 1, id="damaged downwards"),
        pytest.param([row(0, 2, 0), row(2, 2, 50), row(0, 1, 100), row(1, 4, 200)], [0, 1], 0, id="made anew"),
        pytest.param([row(5, 2, 0), row(0, 3, 100)], [0], 0, id="made anew at the end"),
        pytest.param([row(5, 2, 0), row(4, 3, 100)], [5], 1, id="damaged at the end"),
    ],
)
def test_writer_keeps_offsets_in_order(rows: list[Row], bases: list[int], left_out: int, tmp_path: Path) -> None:
    written: Callable[[], bytes] = (tmp_path / "queue" / f"{0:020d}").read_bytes
    writer = BatchQueueWriter(str(tmp_path / "queue"), 10 * BATCH_ENTRY_BYTES)
    writer.add(np.array(rows, np.int64))
    writer.finish()
    data = written()
    found = [int.from_bytes(data[place * 46 + 28 : place * 46 + 36], "big") for place in range(writer.entries)]
    assert (found, len(writer.left_out)) == (bases, left_out)
