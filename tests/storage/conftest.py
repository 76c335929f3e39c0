"""Stores for the tests of this directory: small files, a settable clock, and check() at the end of every test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage, IsBatchTopic, PutResult, PutStatus
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.message_store import FileMessageStore

LOG_FILE_BYTES = 4096
QUEUE_FILE_BYTES = 200
BATCH_QUEUE_FILE_BYTES = 184
HOST = bytes([10, 0, 0, 1]) + (10911).to_bytes(4, "big")
START_MS = 1_700_000_000_000


@attrs.define
class SettableClock:
    """Store time in ms; every call gives `now`."""

    now: int = START_MS

    def __call__(self) -> int:
        return self.now


def message(topic: str = "TopicA", queue_id: int = 0, body: bytes = b"hello", **fields: Any) -> InnerMessage:
    """A message whose properties say nothing but what `fields` give."""
    values: dict[str, Any] = {
        "properties": b"",
        "property_map": {},
        "tags_code": 0,
        "born_timestamp": START_MS - 5,
        "born_host": HOST,
    }
    return InnerMessage(topic, queue_id, body, **(values | fields))


def tagged(tags: str, code: int, **fields: Any) -> InnerMessage:
    """A message with tags, whose hash is `code`."""
    return message(properties=f"TAGS\x01{tags}".encode(), property_map={"TAGS": tags}, tags_code=code, **fields)


def put(store: Any, *messages: InnerMessage) -> list[PutResult]:
    """Put messages one by one and make them visible."""
    results = [store.put_message(one) for one in messages]
    store.dispatch()
    assert [result.status for result in results] == [PutStatus.PUT_OK] * len(results)
    return results


def config(root: Path, **fields: Any) -> StoreConfig:
    """A configuration with small files."""
    values: dict[str, Any] = {
        "store_path_root_dir": str(root),
        "mapped_file_size_commit_log": LOG_FILE_BYTES,
        "mapped_file_size_consume_queue": QUEUE_FILE_BYTES,
        "mapper_file_size_batch_consume_queue": BATCH_QUEUE_FILE_BYTES,
        "store_host": HOST,
        "physical_memory": 1 << 30,
        "max_hash_slot_num": 50,
        "max_index_num": 200,
    }
    return StoreConfig(**(values | fields))


def no_sync(descriptor: int) -> None:
    """Instead of fdatasync, where a test does not ask about the disk."""


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for the disk to take a small file or a name; a test that asks about that has a fake of its own."""
    monkeypatch.setattr(os, "fsync", no_sync)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def known_topics() -> dict[str, bool]:
    """Topics with batch queues, as the stores get them; at first none is known."""
    return {}


OpenFileStore = Callable[..., FileMessageStore]


@pytest.fixture
def open_store(tmp_path: Path, clock: SettableClock, known_topics: dict[str, bool]) -> Iterator[OpenFileStore]:
    """Opens file stores; closes them at the end and checks that each is sound."""
    opened: list[FileMessageStore] = []

    def open_one(
        root: Path | None = None,
        *,
        keywords: dict[str, Any] | None = None,
        is_batch_topic: IsBatchTopic | None = None,
        **fields: Any,
    ) -> FileMessageStore:
        store = FileMessageStore(
            config(root or tmp_path / "store", **fields),
            clock,
            **{"sync": no_sync, "is_batch_topic": is_batch_topic or known_topics.get} | (keywords or {}),
        )
        store.start()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        if store.is_open:
            assert [str(problem) for problem in store.check()] == []
        store.close()


@pytest.fixture(params=["file", "memory"])
def any_store(request: pytest.FixtureRequest, clock: SettableClock, open_store: OpenFileStore, tmp_path: Path) -> Any:
    """Each of the two stores, open; checked and closed at the end."""
    if request.param == "file":
        return open_store()
    return request.getfixturevalue("memory_store")


@pytest.fixture
def memory_store(tmp_path: Path, clock: SettableClock, known_topics: dict[str, bool]) -> Iterator[MemoryMessageStore]:
    store = MemoryMessageStore(config(tmp_path / "unused"), clock, is_batch_topic=known_topics.get)
    store.start()
    yield store
    assert store.check() == []
    store.close()
