"""Findings of verify, and none for a store in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from tests.storage.tools.conftest import MESSAGES, ClosedStore
from twisted_mq.protocol.layouts.queue_entry import pack_entry
from twisted_mq.storage.errors import NoStore
from twisted_mq.storage.tools.findings import StoreFinding
from twisted_mq.storage.tools.verify import verify


def named(store: ClosedStore) -> list[str]:
    return [str(one).replace(f"{store.root}/", "") for one in verify(str(store.root)).findings]


def test_sound_store_in_figures(closed: ClosedStore) -> None:
    report = verify(str(closed.root))
    assert (report.sound, report.closed, report.in_use) == (True, True, False)
    assert (report.messages, report.entries, report.topics, report.queues) == (MESSAGES, MESSAGES, 2, 4)
    offset, size = closed.record_at(MESSAGES - 1)
    assert (report.min_offset, report.max_offset) == (0, offset + size)
    assert closed.problems() == []


def test_damaged_body_is_named_with_its_reason(closed: ClosedStore) -> None:
    offset, size = closed.record_at(8)
    closed.overwrite(closed.log_file(0), offset + 120, b"\xff")
    found = named(closed)
    assert found[0].startswith(f"commitlog/{0:020d} at {offset}: {size} bytes are not a record: the body's CRC is not ")
    assert found[1:] == [
        f"consumequeue/TopicA/0 at 2: leads to {offset}, where no record of this queue offset is",
    ]


def test_every_bit_of_a_records_head_that_matters_is_noticed(closed: ClosedStore) -> None:
    """Fields without a CRC are checked if another part of the store has the same value."""
    offset, _ = closed.record_at(3)
    content = closed.log_file(0).read_bytes()
    for position in (*range(16), *range(20, 36)):
        changed = bytearray(content)
        changed[offset + position] ^= 1
        closed.log_file(0).write_bytes(changed)
        assert named(closed) != [], position
    closed.log_file(0).write_bytes(content)
    assert named(closed) == []


def test_lost_queue_is_one_finding_a_run(closed: ClosedStore) -> None:
    for path in closed.queue_file("TopicA", 1).parent.iterdir():
        path.unlink()
    offset, _ = closed.record_at(2)
    assert named(closed) == [
        f"consumequeue/TopicA/1 at 0: no entry leads to the record at {offset}; and so on, 12 in a row"
    ]


def test_records_of_deleted_topics_are_counted(closed: ClosedStore) -> None:
    for queue_id in (0, 1):
        for path in closed.queue_file("TopicA", queue_id).parent.iterdir():
            path.unlink()
    (closed.root / "config" / "topics.json").write_text('{"topicConfigTable":{"TopicBB":{"topicName":"TopicBB"}}}')
    report = verify(str(closed.root))
    assert (report.findings, report.deleted_records) == ([], 25)


def test_consumer_offset_behind_its_queue_is_named(closed: ClosedStore) -> None:
    path = closed.root / "config" / "consumerOffset.json"
    path.write_text('{"offsetTable":{"TopicA@group":{0:13,1:13},"Gone@group":{0:5}}}')
    assert named(closed) == [
        "config/consumerOffset.json at 13: group group has consumed TopicA/1 up to here, the queue ends at 12"
    ]


def test_unreadable_table_is_named(closed: ClosedStore) -> None:
    (closed.root / "config" / "topics.json").write_text("{")
    (found,) = verify(str(closed.root)).findings
    assert (found.part, found.problem.partition(":")[0]) == ("config", "cannot be read")


def test_store_in_use_is_sound_while_records_wait_for_their_dispatch(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, *[message(body=b"x" * 50) for _ in range(20)])
    store.put_message(message())
    report = verify(str(tmp_path / "store"))
    assert (report.in_use, report.findings, report.undispatched, report.messages) == (True, [], 1, 21)
    store.dispatch()
    assert verify(str(tmp_path / "store")).undispatched == 0


def test_bridge_over_a_lost_message_is_sound(closed: ClosedStore) -> None:
    """If the record is lost, an entry that is equal to the next is correct; otherwise it is wrong."""
    path = closed.queue_file("TopicA", 0)
    entries = path.read_bytes()
    closed.overwrite(path, 20, entries[40:60])
    offset, size = closed.record_at(8)
    right, _ = closed.record_at(4)
    assert named(closed) == [
        f"consumequeue/TopicA/0 at 1: is ({offset}, {size}, 0), the record says ({right}, {size}, 0)"
    ]


def test_entry_that_leads_nowhere(closed: ClosedStore) -> None:
    closed.overwrite(closed.queue_file("TopicA", 1, 200), 40, pack_entry(99999, 200, 0))
    assert named(closed) == ["consumequeue/TopicA/1 at 12: leads to 99999, where no record of this queue offset is"]


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(NoStore):
        verify(str(tmp_path))


def test_finding_reads_as_one_line() -> None:
    assert str(StoreFinding("log", "/log", 5, "is odd")) == "/log at 5: is odd"
    assert StoreFinding("log", "/log", 5, "is odd", 3).as_json() == {
        "part": "log", "path": "/log", "offset": 5, "problem": "is odd", "count": 3,
    }  # fmt: skip
