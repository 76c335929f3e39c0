"""Two stores side by side: where their logs part and what only one of them has; cutting a log by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import LOG_FILE_BYTES, OpenFileStore, message, put
from twisted_mq.storage.errors import NoStore, StoreLocked
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.store_reader import StoreReader
from twisted_mq.storage.tools.compare import compare_stores
from twisted_mq.storage.tools.log_cut import NoRecordThere, cut_log


def keyed(number: int, **fields: Any) -> InnerMessage:
    key = f"KEY{number:05}"
    return message(properties=f"UNIQ_KEY\x01{key}\x02".encode(), property_map={"UNIQ_KEY": key}, **fields)


def copied(open_store: OpenFileStore, tmp_path: Path, count: int) -> tuple[Any, Any]:
    master, slave = open_store(), open_store(tmp_path / "slave")
    put(master, *(keyed(n, queue_id=n % 2) for n in range(count)))
    offset = 0
    while data := master.read_log(offset, 1 << 20):
        slave.append_log(offset, bytes(data))
        offset += len(data)
    slave.dispatch()
    return master, slave


def roots(*stores: Any) -> tuple[str, ...]:
    return tuple(store.config.store_path_root_dir for store in stores)


def places(messages: Any) -> list[tuple[str, int]]:
    return [(one.unique_key, one.physical_offset) for one in messages]


def test_equal_logs_have_no_difference(open_store: OpenFileStore, tmp_path: Path) -> None:
    found = compare_stores(*roots(*copied(open_store, tmp_path, 50)))
    assert not found
    assert (found.left.max_offset, found.left.only_here, found.right.only_here) == (found.right.max_offset, (), ())


def test_longer_log_differs_where_the_shorter_ends(open_store: OpenFileStore, tmp_path: Path) -> None:
    master, slave = copied(open_store, tmp_path, 5)
    end = master.max_physical_offset()
    put(master, keyed(77))
    found = compare_stores(*roots(master, slave))
    assert (found.first_offset, found.record_offset) == (end, end)
    assert (places(found.left.only_here), places(found.right.only_here)) == ([("KEY00077", end)], [])


def test_logs_that_went_separate_ways(open_store: OpenFileStore, tmp_path: Path) -> None:
    """Both have KEY00009 behind the fork, at different places; each has one that the other lacks."""
    master, slave = copied(open_store, tmp_path, 5)
    fork = master.max_physical_offset()
    put(master, keyed(6, body=b"longer than the other"), keyed(9))
    slave.close()
    slave.start()
    put(slave, keyed(7), keyed(9))
    found = compare_stores(*roots(master, slave))
    assert (found.first_offset, found.record_offset) == (fork + 3, fork)
    assert places(found.left.only_here) == [("KEY00006", fork)]
    assert places(found.right.only_here) == [("KEY00007", fork)]


def test_log_that_begins_later_is_compared_from_there(open_store: OpenFileStore, tmp_path: Path) -> None:
    master = open_store()
    put(master, *(keyed(n) for n in range(90)))
    start = master.newest_file_offset()
    slave = open_store(tmp_path / "slave")
    slave.append_log(start, bytes(master.read_log(start, 1 << 20)))
    found = compare_stores(*roots(master, slave))
    assert not found
    assert (found.right.min_offset, found.right.max_offset) == (start, master.max_physical_offset())


def test_difference_in_an_early_file_is_found(open_store: OpenFileStore, tmp_path: Path) -> None:
    """Equal files are passed as a whole; a record of the second file differs in its last byte."""
    master, slave = copied(open_store, tmp_path, 160)
    records = list(StoreReader(*roots(slave)).records())
    place, record = next((place, record) for place, record in records if place >= LOG_FILE_BYTES)
    assert records[-1][0] > 2 * LOG_FILE_BYTES
    slave.close()
    end = place + len(record) - 1
    with (tmp_path / "slave" / "commitlog" / f"{LOG_FILE_BYTES:020}").open("r+b") as file:
        file.seek(end - LOG_FILE_BYTES)
        file.write(b"\x7f")
    found = compare_stores(*roots(master, slave))
    assert (found.first_offset, found.record_offset) == (end, place)
    assert found.left.max_offset == found.right.max_offset == master.max_physical_offset()


def test_missing_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoStore):
        compare_stores(str(tmp_path / "a"), str(tmp_path / "b"))
    with pytest.raises(NoStore):
        cut_log(str(tmp_path / "a"), 0)


def test_cut_log_continues_like_its_master(open_store: OpenFileStore, tmp_path: Path) -> None:
    master, slave = copied(open_store, tmp_path, 90)
    fork = master.max_physical_offset()
    slave.close()
    slave.start()
    put(slave, *(keyed(n) for n in range(100, 160)))
    slave.close()
    kept = cut_log(str(tmp_path / "slave"), fork)
    assert Path(kept).name == f"{fork:020}"
    slave.start()
    assert (slave.max_physical_offset(), slave.max_offset_in_queue("TopicA", 0)) == (fork, 45)
    assert not compare_stores(*roots(master, slave))
    assert fork > LOG_FILE_BYTES


def test_cut_is_refused_inside_a_record_and_under_a_broker(open_store: OpenFileStore, tmp_path: Path) -> None:
    master, slave = copied(open_store, tmp_path, 5)
    with pytest.raises(StoreLocked):
        cut_log(str(tmp_path / "slave"), 0)
    end = slave.max_physical_offset()
    slave.close()
    for offset in (1, end + 1, 1 << 40):
        with pytest.raises(NoRecordThere, match=f"no record begins at {offset}"):
            cut_log(str(tmp_path / "slave"), offset)
    assert cut_log(str(tmp_path / "slave"), end) == ""
    slave.start()
    assert slave.max_physical_offset() == end == master.max_physical_offset()
