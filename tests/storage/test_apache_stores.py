"""Stores that Apache's broker wrote open here and hold what Apache says."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.storage.apache_stores import FILE_SIZES, expected, sizes_of, unpack
from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.storage.check import check_store
from twisted_mq.storage.interfaces import GetStatus
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.store_reader import StoreReader

ALL = sorted(FILE_SIZES)


@pytest.fixture
def open_apache(open_store: OpenFileStore, tmp_path: Path) -> Any:
    def open_one(name: str) -> FileMessageStore:
        return open_store(unpack(name, tmp_path), **sizes_of(name))

    return open_one


@pytest.mark.parametrize("name", ALL)
def test_log_ends_where_apache_ends_it(open_apache: Any, name: str) -> None:
    store = open_apache(name)
    (line,) = expected(name, "store")
    assert (store.min_physical_offset(), store.max_physical_offset()) == (line["minPhyOffset"], line["maxPhyOffset"])


@pytest.mark.parametrize("name", ALL)
def test_queues_have_apaches_entries(open_apache: Any, name: str) -> None:
    store = open_apache(name)
    lines = expected(name, "queue")
    assert [(topic, queue_id) for topic in store.topics() for queue_id in store.queue_ids(topic)] == sorted(
        (line["topic"], line["queueId"]) for line in lines
    )
    for line in lines:
        topic, queue_id = line["topic"], line["queueId"]
        ends = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
        assert ends == (line["minOffset"], line["maxOffset"])
        assert records_of(store, topic, queue_id) == [
            tuple(entry[:3]) for entry in line["entries_offset_pos_size_tagsCode"]
        ]


def records_of(store: FileMessageStore, topic: str, queue_id: int) -> list[tuple[int, int, int]]:
    """(queue offset, physical offset, size) of all that pulls give."""
    found, offset = [], 0
    while (result := store.get_message(topic, queue_id, offset, 32, 1 << 20, None)).status is GetStatus.FOUND:
        stored = [decode_message(record) for record in result.records]
        found += [(one.queue_offset, one.physical_offset, one.store_size) for one in stored]
        offset = result.next_begin_offset
    return found


@pytest.mark.parametrize("name", ALL)
def test_tags_codes_are_apaches(open_apache: Any, name: str) -> None:
    """check() compares each entry with what the record says, so it is enough that Apache's entries pass it."""
    store = open_apache(name)
    codes = {
        (line["topic"], line["queueId"], entry[0]): entry[3]
        for line in expected(name, "queue")
        for entry in line["entries_offset_pos_size_tagsCode"]
    }
    heard = {
        (topic, queue_id, offset): entry[2]
        for topic, queue_id in {key[:2] for key in codes}
        for offset, entry in queue_entries(store, topic, queue_id)
    }
    assert heard == codes


def queue_entries(store: FileMessageStore, topic: str, queue_id: int) -> list[Any]:
    reader = StoreReader(store.config.store_path_root_dir)
    return [
        entry
        for queue in reader.queues()
        if (queue.topic, queue.queue_id) == (topic, queue_id)
        for entry in queue.entries()
    ]


@pytest.mark.parametrize("name", ALL)
def test_messages_are_apaches(open_apache: Any, name: str) -> None:
    store = open_apache(name)
    reader = StoreReader(store.config.store_path_root_dir)
    assert [as_apache_prints(one) for one in reader.messages()] == [
        {key: line[key] for key in PRINTED} for line in expected(name, "message")
    ]
    assert reader.problems == []


PRINTED = (
    *("topic", "queueId", "queueOffset", "commitLogOffset", "msgId", "storeSize", "bodyCRC", "sysFlag", "flag"),
    *("bornTimestamp", "storeTimestamp", "bornHost", "storeHost", "reconsumeTimes", "preparedTransactionOffset"),
    *("properties", "bodyLength", "bodySha256"),
)


def as_apache_prints(stored: MessageExt) -> dict[str, Any]:
    return {
        "topic": stored.topic,
        "queueId": stored.queue_id,
        "queueOffset": stored.queue_offset,
        "commitLogOffset": stored.physical_offset,
        "msgId": stored.msg_id,
        "storeSize": stored.store_size,
        "bodyCRC": stored.body_crc,
        "sysFlag": stored.sys_flag,
        "flag": stored.flag,
        "bornTimestamp": stored.born_timestamp,
        "storeTimestamp": stored.store_timestamp,
        "bornHost": stored.born_host,
        "storeHost": stored.store_host,
        "reconsumeTimes": stored.reconsume_times,
        "preparedTransactionOffset": stored.prepared_transaction_offset,
        "properties": stored.properties,
        "bodyLength": len(stored.body),
        "bodySha256": hashlib.sha256(stored.body).hexdigest(),
    }


@pytest.mark.parametrize("name", ALL)
def test_every_record_is_found_by_its_offset(open_apache: Any, name: str) -> None:
    store = open_apache(name)
    for line in expected(name, "message"):
        record = store.look_message(line["commitLogOffset"])
        assert len(record) == line["storeSize"]


@pytest.mark.parametrize(("name", "clean"), [("st", True), ("livecopy", False), ("cut_tail", False)])
def test_abort_file_decides_the_kind_of_start(open_apache: Any, name: str, clean: bool) -> None:
    assert open_apache(name).recovery_report.clean is clean


def test_clean_store_needs_no_repair(open_apache: Any) -> None:
    report = open_apache("st").recovery_report
    assert (report.records_checked, report.entries_written, report.actions) == (399, 0, [])


def test_damaged_record_at_the_end_is_dropped(open_apache: Any, tmp_path: Path) -> None:
    report = open_apache("cut_tail").recovery_report
    assert [(Path(action.path).relative_to(tmp_path), action.offset, action.done) for action in report.actions] == [
        (
            Path("cut_tail/commitlog"),
            505906,
            "the log was cut here (properties of 0 bytes where 140 are left of the record)",
        ),
        (
            Path("cut_tail/consumequeue/CapTorn/1"),
            507,
            "1 entries dropped that point past the end of the log at 505906",
        ),
        (
            Path("cut_tail/index/20261120233636626"),
            396644,
            "leads to 505906, past the end of the log at 505906; the index is rebuilt from here on",
        ),
    ]


def test_entries_past_the_end_of_the_log_are_dropped(open_apache: Any, tmp_path: Path) -> None:
    report = open_apache("livecopy").recovery_report
    assert [(Path(action.path).relative_to(tmp_path), action.offset, action.done) for action in report.actions] == [
        (
            Path(f"livecopy/consumequeue/CapTorn/{queue_id}"),
            offset,
            "1 entries dropped that point past the end of the log at 481230",
        )
        for queue_id, offset in ((0, 484), (1, 483))
    ] + [
        (
            Path("livecopy/index/20261120233636348"),
            197377,
            "may not be on disk whole after the crash; the index is rebuilt from here on, with 1 newer files",
        )
    ]


@pytest.mark.parametrize("name", ["st", "ha_master", "ha_slave"])
def test_offline_check_finds_apaches_clean_stores_sound(tmp_path: Path, name: str) -> None:
    assert check_store(str(unpack(name, tmp_path))) == []


@pytest.mark.parametrize("name", ALL)
def test_apaches_store_goes_on_here(open_apache: Any, name: str) -> None:
    store = open_apache(name)
    before = store.max_physical_offset()
    topic = store.topics()[-1]
    end = store.max_offset_in_queue(topic, 0)
    results = put(store, *[message(topic=topic, body=bytes([number])) for number in range(100)])
    assert [result.queue_offset for result in results] == list(range(end, end + 100))
    assert store.max_physical_offset() > before
    store.close()
    store.start()
    assert store.max_offset_in_queue(topic, 0) == end + 100
    assert store.recovery_report.actions == []


def test_small_bodies_are_byte_for_byte(open_apache: Any) -> None:
    store = open_apache("st")
    lines = [line for line in expected("st", "message") if "bodyBase64" in line]
    assert lines
    assert [decode_message(store.look_message(line["commitLogOffset"])).body for line in lines] == [
        base64.b64decode(line["bodyBase64"]) for line in lines
    ]
