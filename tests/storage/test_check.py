"""Findings of check() in an open store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.protocol.layouts.queue_entry import ENTRY

RECORD = 91 + 6 + 100


@pytest.fixture
def store(open_store: OpenFileStore) -> Any:
    store = open_store()
    put(store, *[message(body=bytes([number]) * 100) for number in range(5)])
    return store


def named(store: Any, tmp_path: Path) -> list[str]:
    return [str(problem).replace(str(tmp_path / "store") + "/", "") for problem in store.check()]


def test_undispatched_records_are_no_inconsistency(store: Any) -> None:
    store.put_message(message())
    assert store.check() == []


def test_wrong_entry_is_named(store: Any, tmp_path: Path) -> None:
    (queue,) = store._queues
    view = queue.files.files[0].view
    ENTRY.pack_into(view, 40, 2 * RECORD, RECORD, 9)
    assert named(store, tmp_path) == [
        f"consumequeue/TopicA/0 at 2: is ({2 * RECORD}, {RECORD}, 9), the record says ({2 * RECORD}, {RECORD}, 0)"
    ]
    ENTRY.pack_into(view, 40, 2 * RECORD, RECORD, 0)


def test_damaged_record_is_named_with_what_it_hides(store: Any, tmp_path: Path) -> None:
    view = store._log.view
    right = view[3 * RECORD + 120]
    view[3 * RECORD + 120] = right ^ 1
    found = named(store, tmp_path)
    assert found[0].startswith(f"commitlog at {3 * RECORD}: damaged record: the body's CRC is ")
    assert found[1:] == [
        f"consumequeue/TopicA/0 at {offset}: leads to {offset * RECORD}, where no record of this queue offset is"
        for offset in (3, 4)
    ]
    view[3 * RECORD + 120] = right


def test_missing_entry_is_named(store: Any, tmp_path: Path) -> None:
    (queue,) = store._queues
    queue.max_offset -= 1
    assert named(store, tmp_path) == [f"TopicA/0 at 4: no entry leads to the record at {4 * RECORD}"]
    queue.max_offset += 1


def test_records_behind_the_end_are_named(store: Any, tmp_path: Path) -> None:
    store._log.max_offset -= RECORD
    assert named(store, tmp_path) == [
        f"commitlog at {5 * RECORD}: the log's end is {4 * RECORD}, the last record ends here"
    ]
    store._log.max_offset += RECORD
