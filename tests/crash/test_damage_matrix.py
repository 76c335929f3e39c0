"""A cut at every byte and a flipped bit in every byte of a small store's files: it opens, says so, serves what is intact.

`make test` takes every 41st byte, of the small batch queue's files every third; `make crash` all of them.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.test_batch_queue_contract import TOPIC, inner_batch
from tests.support.crash_rounds import thorough
from tests.support.store_load import HOST, START_MS, small_config
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES
from twisted_mq.protocol.layouts.record_codec import dispatch_fields
from twisted_mq.storage.interfaces import InnerMessage, PutStatus
from twisted_mq.storage.message_store import FileMessageStore

FILES = ("log", "queue", "first of batches", "last of batches", "index", "checkpoint")
STRIDES = {name: 1 if thorough() else 3 if "batches" in name else 41 for name in FILES}
LOG_FILE_BYTES = 4096
BATCH_QUEUE_FILE_BYTES = 3 * BATCH_ENTRY_BYTES
QUEUES = (("TopicA", 0), ("TopicA", 1), ("TopicB", 0), (TOPIC, 0))
MESSAGES = 30
NAMED_BY_CHECK = ("log", "index")
"""Files whose damage a start may not see, because no sum covers all of a record or an index: check() names it."""
Place = tuple[str, int, int]
Damage = Callable[[Path, int], None]


def cut(path: Path, position: int) -> None:
    """Everything from the byte on is gone."""
    os.truncate(path, position)


def flip(path: Path, position: int) -> None:
    """Flip one bit of the byte."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << random.Random(position).randrange(8)
    path.write_bytes(data)


def open_store(root: Path) -> FileMessageStore:
    config = small_config(
        root,
        mapped_file_size_commit_log=LOG_FILE_BYTES,
        mapper_file_size_batch_consume_queue=BATCH_QUEUE_FILE_BYTES,
        max_hash_slot_num=8,
        max_index_num=64,
    )
    store = FileMessageStore(config, lambda: START_MS, is_batch_topic=TOPIC.__eq__, sync=lambda _descriptor: None)
    store.start()
    return store


def put_some(store: FileMessageStore) -> None:
    for number in range(MESSAGES):
        topic, queue_id = QUEUES[number % len(QUEUES)]
        body, properties = bytes([65 + number]), {"KEYS": f"key{number}"}
        message = InnerMessage(
            topic, queue_id, body * 90, f"KEYS\x01key{number}".encode(), properties, 0, born_host=HOST
        )
        if number % 8 == 3:
            message = inner_batch(
                *[body] * 3,
                properties=message.properties + b"\x02INNER_NUM\x013\x02",
                property_map={**properties, "INNER_NUM": "3"},
            )
        assert store.put_message(message).status is PutStatus.PUT_OK
    store.dispatch()
    assert store._flush is not None
    store._flush.flush_log()
    store.dispatch()


def served(store: FileMessageStore) -> dict[Place, bytes]:
    """Place to whole record of all that readers get."""
    found = {}
    for topic, queue_id in QUEUES:
        offset, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
        while offset < end:
            result = store.get_message(topic, queue_id, offset, 1, 1 << 20, None)
            for record in result.records:
                found[topic, queue_id, result.next_begin_offset - 1] = bytes(record)
            offset = max(offset + 1, result.next_begin_offset)
    return found


class Template:
    """A store at rest, closed or left by a crash, and all of its messages."""

    def __init__(self, root: Path, *, clean: bool) -> None:
        self.root = root
        store = open_store(root)
        put_some(store)
        self.messages = served(store)
        assert len(self.messages) == MESSAGES
        crashed = root.with_name("crashed")
        shutil.copytree(root, crashed)
        store.close()
        if not (crashed / "index").exists() or not list((crashed / "index").iterdir()):
            shutil.copytree(
                root / "index", crashed / "index", dirs_exist_ok=True
            )  # a crash later than the flush of the index
        if not (crashed / "checkpoint").exists():
            shutil.copy(root / "checkpoint", crashed)
        if not clean:
            shutil.rmtree(root)
            crashed.rename(root)
        self.files = {
            "log": sorted((root / "commitlog").iterdir())[-1],
            "queue": sorted((root / "consumequeue" / "TopicA" / "0").iterdir())[-1],
            "first of batches": sorted((root / "batchconsumequeue" / TOPIC / "0").iterdir())[0],
            "last of batches": sorted((root / "batchconsumequeue" / TOPIC / "0").iterdir())[-1],
            "index": sorted((root / "index").iterdir())[-1],
            "checkpoint": root / "checkpoint",
        }


@pytest.fixture(scope="module", params=["closed", "crashed"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("matrix") / "store", clean=request.param == "closed")


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def problems(template: Template, name: str, damage: Damage, position: int, scratch: Path) -> list[str]:
    """Return violated promises of a start on the damaged files."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(template.root, scratch)
    damage(scratch / template.files[name].relative_to(template.root), position)
    store = open_store(scratch)
    try:
        found = served(store)
        checked = store.check()
        wrong = [f"check: {problem}" for problem in checked if name not in NAMED_BY_CHECK]
        kept = b"".join(path.read_bytes() for path in (scratch / "damaged").glob("*"))
        for place, record in template.messages.items():
            if found.get(place) != record and not _excused(template, name, damage, position, record, kept):
                wrong.append(f"lost: {place}")
        if found.keys() < template.messages.keys() and not (store.recovery_report.actions or checked):
            wrong.append("something is lost and nothing was said")
        return wrong
    finally:
        store.close()


def _excused(template: Template, name: str, damage: Damage, position: int, record: bytes, kept: bytes) -> bool:
    """Only a damaged log loses messages: the damaged one; those behind it are kept in `damaged`, as far as not cut off."""
    if name != "log":
        return False
    begin = dispatch_fields(record).physical_offset - int(template.files["log"].name)
    if damage is cut:
        return begin + len(record) > position
    return begin <= position < begin + len(record) or (begin > position and record in kept)


@pytest.mark.parametrize("damage", [cut, flip])
@pytest.mark.parametrize("name", FILES)
def test_store_opens_and_serves_what_is_intact(template: Template, name: str, damage: Damage, tmp_path: Path) -> None:
    size = template.files[name].stat().st_size
    wrong = {}
    for position in range(0, size, STRIDES[name]):
        found = problems(template, name, damage, position, tmp_path / "store")
        if found:
            wrong[position] = found
    assert wrong == {}
