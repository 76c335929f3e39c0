"""Features of the twin in memory beyond the contract: flushes that can be held."""

from __future__ import annotations

from pathlib import Path

from tests.storage.conftest import SettableClock, config, message
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.memory.memory_store import MemoryMessageStore


def test_held_flush_hides_messages_and_keeps_callbacks(tmp_path: Path, clock: SettableClock) -> None:
    settings = config(tmp_path, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    store = MemoryMessageStore(settings, clock, hold_flushes=True)
    store.start()
    answers: list[bool] = []
    result = store.put_message(message())
    store.when_flushed(result.end_offset, answers.append)
    store.dispatch()
    assert (answers, store.flushed_offset(), store.max_offset_in_queue("TopicA", 0)) == ([], 0, 0)
    store.flush()
    store.dispatch()
    assert (answers, store.flushed_offset()) == ([True], result.end_offset)
    assert store.max_offset_in_queue("TopicA", 0) == 1
    assert store.check() == []


def test_callback_comes_at_once_otherwise(tmp_path: Path, clock: SettableClock) -> None:
    store = MemoryMessageStore(config(tmp_path), clock)
    store.start()
    answers: list[bool] = []
    store.when_flushed(store.put_message(message()).end_offset, answers.append)
    assert answers == [True]


def test_damage_is_named(tmp_path: Path, clock: SettableClock) -> None:
    store = MemoryMessageStore(config(tmp_path), clock)
    store.start()
    store.put_message(message())
    store.dispatch()
    store._records[0] = store._records[0][:-3]
    (problem,) = store.check()
    assert problem.problem.startswith("no record for TopicA/0/0: ")
