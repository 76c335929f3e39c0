"""A start that is itself interrupted, by SIGKILL or a power cut, at each of its writes: the next one owes the same.

`make test` interrupts each recovery at a few of its writes, `make crash` at all of them.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.support.crash_rounds import thorough
from tests.support.interruption import Interruption, Killed
from tests.support.power_cut import DiskRecorder
from tests.support.store_load import HOST, MS_A_MESSAGE, START_MS, small_config
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES
from twisted_mq.storage.flushing.flush import FlushService
from twisted_mq.storage.flushing.index_flush import IndexFlush
from twisted_mq.storage.interfaces import InnerMessage, PutStatus
from twisted_mq.storage.message_store import FileMessageStore

BATCHES = "Batches"
"""A topic of the type BatchCQ."""
QUEUES = (("TopicA", 0), ("TopicA", 1), ("TopicB", 0), (BATCHES, 0))
MESSAGES = 200
KILLS_A_CASE = 3
LOG_FILE_BYTES = 8192
Places = dict[tuple[str, int, int], bytes]


def make_store(root: Path, sync: Callable[[int], None], seconds: Callable[[], float] = lambda: 0.0) -> FileMessageStore:
    config = small_config(
        root,
        mapped_file_size_commit_log=LOG_FILE_BYTES,
        mapper_file_size_batch_consume_queue=20 * BATCH_ENTRY_BYTES,
        max_hash_slot_num=8,
        max_index_num=64,
    )
    is_batch_topic = {BATCHES: True}.get
    return FileMessageStore(config, lambda: START_MS, is_batch_topic=is_batch_topic, sync=sync, monotonic=seconds)


def no_sync(_descriptor: int) -> None:
    """A disk that is quick."""


def fill(root: Path, *, clean: bool) -> None:
    """A store that was closed, or whose broker was killed some messages after the last checkpoint."""
    now = [0]
    store = make_store(root, no_sync, lambda: now[0] / 100)
    store._now_ms = store._appender._now_ms = lambda: START_MS + now[0] * MS_A_MESSAGE
    store.start()
    assert store._flush is not None
    for number in range(MESSAGES):
        now[0] = number
        topic, queue_id = QUEUES[number % len(QUEUES)]
        properties = {"KEYS": f"key{number}"}
        body = bytes([number % 256]) * (60 + number)
        text = f"KEYS\x01key{number}".encode()
        one = InnerMessage(topic, queue_id, body, text, properties, 0, born_host=HOST)
        assert store.put_message(one).status is PutStatus.PUT_OK
        store.dispatch()
        store._flush.flush_log()
        store.dispatch()
        if number < MESSAGES * 3 // 4:
            store._flush.turn()
    store.build_index(1 << 40)
    if clean:
        store.close()
    else:
        store._release()
        store._directory.close(clean=False)


def files(root: Path, *names: str) -> list[Path]:
    return sorted(root.joinpath(*names).iterdir())


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def queue_file_cut(root: Path) -> None:
    os.truncate(files(root, "consumequeue", "TopicA", "0")[1], 130)


def queue_file_missing(root: Path) -> None:
    files(root, "consumequeue", "TopicA", "1")[1].unlink()


def batch_queue_file_cut(root: Path) -> None:
    os.truncate(files(root, "batchconsumequeue", BATCHES, "0")[1], 130)


def hole_in_a_queue(root: Path) -> None:
    overwrite(files(root, "consumequeue", "TopicB", "0")[-1], 20, bytes(40))


def queue_file_empty(root: Path) -> None:
    os.truncate(files(root, "consumequeue", "TopicA", "0")[-1], 0)


def queue_leads_elsewhere(root: Path) -> None:
    source = files(root, "consumequeue", "TopicA", "0")[-1].read_bytes()
    overwrite(files(root, "consumequeue", "TopicB", "0")[-1], 0, source)


def queue_directory_missing(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "TopicA")


def queues_missing(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")


def index_file_damaged(root: Path) -> None:
    overwrite(files(root, "index")[0], 16, b"\xff" * 8)


def log_torn(root: Path) -> None:
    overwrite(files(root, "commitlog")[-1], 700, bytes(200))


def log_damaged_before_intact_records(root: Path) -> None:
    overwrite(files(root, "commitlog")[-2], 1000, b"\xff" * 30)


def nothing(root: Path) -> None:
    pass


DAMAGES = (
    nothing,
    queue_file_cut,
    queue_file_missing,
    batch_queue_file_cut,
    hole_in_a_queue,
    queue_file_empty,
    queue_leads_elsewhere,
    queue_directory_missing,
    queues_missing,
    index_file_damaged,
    log_torn,
    log_damaged_before_intact_records,
)


@attrs.frozen
class Outcome:
    """Messages for readers after a start, findings of check(), and the kept bytes of the removed part.

    A start that was interrupted may be followed by one that serves more: a clean one takes a queue that is not there for
    that of a deleted topic, and one after a crash rebuilds it.
    """

    served: Places
    problems: list[str]
    kept: set[bytes]

    @classmethod
    def of(cls, root: Path) -> Outcome:
        """Start a store, look at it, close it."""
        store = make_store(root, no_sync)
        store.start()
        try:
            store.build_index(1 << 40)
            kept = {path.read_bytes() for path in (root / "damaged").glob("*") if path.is_file()}
            return cls(served(store), [str(one) for one in store.check()], kept)
        finally:
            store.close()


def served(store: FileMessageStore) -> Places:
    found: Places = {}
    for topic, queue_id in QUEUES:
        offset = store.min_offset_in_queue(topic, queue_id)
        while offset < store.max_offset_in_queue(topic, queue_id):
            result = store.get_message(topic, queue_id, offset, 32, 1 << 20, None)
            for number, record in enumerate(result.records):
                found[topic, queue_id, offset + number] = bytes(record)
            offset = max(offset + 1, result.next_begin_offset)
    return found


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlushService, "start", lambda self: None)
    monkeypatch.setattr(IndexFlush, "_launch", IndexFlush._flush)


@pytest.fixture(scope="module", params=["closed", "killed"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("interrupted") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlushService, "start", lambda self: None)
        patch.setattr(IndexFlush, "_launch", IndexFlush._flush)
        patch.setattr(os, "fsync", no_sync)
        fill(root, clean=request.param == "closed")
    assert len(files(root, "commitlog")) > 3 and len(files(root, "index")) > 2
    return root


def interrupted(template: Path, damage: Callable[[Path], None], at: int, root: Path) -> tuple[int, Path]:
    """Damage a copy and interrupt its start; the writes it came to, and what a power cut at that moment leaves."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(template, root)
    damage(root)
    image = root.with_name("image")
    shutil.rmtree(image, ignore_errors=True)
    disk = DiskRecorder(root)
    interruption = Interruption(at)
    store = make_store(root, interruption.guarded(disk.sync))
    with interruption.patched(disk.sync), contextlib.suppress(Killed):
        store.start()
    disk.image(image, random.Random(at))
    writes, interruption.at = interruption.writes, -1
    if store.is_open:
        store.close()
    disk.close()
    return writes, image


@pytest.mark.parametrize("damage", DAMAGES)
def test_interrupted_start(
    template: Path, damage: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    writes, _ = interrupted(template, damage, -1, root)
    shutil.rmtree(root)
    monkeypatch.setattr(os, "fsync", no_sync)
    shutil.copytree(template, root)
    damage(root)
    owed = Outcome.of(root)
    assert owed.problems == []
    assert writes > 0 or damage is nothing
    for at in range(0, writes, 1 if thorough() else max(1, writes // KILLS_A_CASE)):
        _, image = interrupted(template, damage, at, root)
        for left in (root, image):
            found = Outcome.of(left)
            assert found.problems == [], (at, left)
            assert found.served.items() >= owed.served.items(), (at, left)
            assert all(any(kept in more for more in found.kept) for kept in owed.kept), (at, left)
