"""Reasons that close a store for messages, and their log lines."""

from __future__ import annotations

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from tests.support.batches import batched
from twisted_mq.storage.appending.gate import Gate, refused
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import PutStatus, Shut
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.retention import DiskUsage


def test_gate_is_open_when_no_reason_is_left_and_names_the_weightiest() -> None:
    gate = Gate(Shut.NOT_STARTED)
    said = [gate.why]
    gate.shut(Shut.DISK_FULL)
    gate.open(Shut.NOT_STARTED)
    said.append(gate.why)
    gate.shut(Shut.SLAVE)
    said.append(gate.why)
    gate.open(Shut.DISK_FULL)
    said.append(gate.why)
    gate.open(Shut.SLAVE)
    assert (said, gate.why) == ([Shut.NOT_STARTED, Shut.DISK_FULL, Shut.SLAVE, Shut.SLAVE], None)


def test_opening_for_a_reason_that_was_none_changes_nothing() -> None:
    gate = Gate(Shut.DISK_FAILED)
    gate.open(Shut.DISK_FULL)
    assert gate.why is Shut.DISK_FAILED


@pytest.mark.parametrize("reason", Shut)
def test_refusal_says_status_and_reason(reason: Shut) -> None:
    busy = reason is Shut.PAGE_CACHE_BUSY
    status = PutStatus.OS_PAGE_CACHE_BUSY if busy else PutStatus.SERVICE_NOT_AVAILABLE
    assert (refused(reason).status, refused(reason).shut) == (status, reason)


def reasons(store: FileMessageStore) -> set[Shut | None]:
    """Why it refuses a message for a queue that is there, one for a new queue, and a batch."""
    results = [
        store.put_message(message()),
        store.put_message(message("Other")),
        store.put_messages(batched([message(), message()])),
    ]
    return {result.shut for result in results}


def test_store_says_that_it_is_not_started_and_shut_down(open_store: OpenFileStore) -> None:
    store = open_store()
    before = FileMessageStore(StoreConfig(store_path_root_dir="/nowhere"), lambda: 0)
    put(store, message())
    store.close()
    assert (reasons(before), reasons(store)) == ({Shut.NOT_STARTED}, {Shut.SHUT_DOWN})
    store.start()
    assert reasons(store) == {None}


def test_store_says_that_its_disk_is_full(open_store: OpenFileStore) -> None:
    store = open_store()
    put(store, message())
    store.retention.expire_log(0, 0, DiskUsage(0.95, 0.1))
    assert reasons(store) == {Shut.DISK_FULL}


def test_slave_whose_disk_has_space_again_stays_a_slave(open_store: OpenFileStore) -> None:
    store = open_store()
    store.append_log(0, b"")
    store.retention.expire_log(0, 0, DiskUsage(0.95, 0.1))
    store.retention.expire_log(0, 0, DiskUsage(0.1, 0.1))
    assert reasons(store) == {Shut.SLAVE}


def test_a_gate_without_space_stays_open_and_says_why_appends_fail() -> None:
    gate = Gate()

    def said(no_space: bool) -> tuple[Shut | None, Shut | None]:
        gate.no_space = no_space
        return gate.why, gate.why_not_now

    assert (said(False), said(True)) == ((None, None), (None, Shut.DISK_FULL))
    gate.shut(Shut.NOT_STARTED)
    assert said(True) == (Shut.NOT_STARTED, Shut.NOT_STARTED)
