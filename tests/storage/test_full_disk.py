"""A disk without space: nothing half-written, a clear status, and service again when there is space."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from tests.support.batches import batched
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.system_calls import posix_fallocate
from twisted_mq.storage.interfaces import GetStatus, PutStatus

RECORD = 91 + 6 + 100


class FullDisk:
    """posix_fallocate with a budget of calls or of bytes."""

    def __init__(self) -> None:
        self.full = False
        self.largest = 1 << 40
        self.refused: list[int] = []

    def __call__(self, descriptor: int, start: int, count: int) -> None:
        if self.full or count > self.largest:
            self.refused.append(count)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        posix_fallocate(descriptor, start, count)


@pytest.fixture
def disk() -> FullDisk:
    return FullDisk()


def small(**fields: Any) -> Any:
    return message(body=bytes(100), **fields)


def test_full_disk_refuses_and_keeps_what_is_there(open_store: OpenFileStore, disk: FullDisk) -> None:
    store = open_store(keywords={"allocate": disk}, commit_log_allocation_step=1)
    put(store, small(), small())
    end = store.max_physical_offset()
    disk.full = True
    results = [
        store.put_message(small()),
        store.put_messages(batched([small(), small()])),
        store.put_message(small(queue_id=1)),
    ]
    assert [result.status for result in results] == [PutStatus.SERVICE_NOT_AVAILABLE] * 3
    store.dispatch()
    assert (store.max_physical_offset(), store.max_offset_in_queue("TopicA", 0)) == (end, 2)
    assert store.get_message("TopicA", 0, 0, 32, 1 << 20, None).status is GetStatus.FOUND
    assert store.check() == []
    disk.full = False
    assert [result.queue_offset for result in put(store, small(), small(queue_id=1))] == [2, 0]


def test_full_disk_at_the_end_of_a_file_leaves_no_new_file(
    open_store: OpenFileStore, disk: FullDisk, tmp_path: Any
) -> None:
    store = open_store(keywords={"allocate": disk})
    put(store, *[small() for _ in range(20)])
    disk.full = True
    assert store.put_message(small()).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert [path.name for path in (tmp_path / "store" / "commitlog").iterdir()] == ["0" * 20]
    assert store.max_physical_offset() == 20 * RECORD
    disk.full = False
    (result,) = put(store, small())
    assert (result.queue_offset, result.physical_offset) == (20, 4096)


def test_full_disk_for_a_queue_writes_no_record(open_store: OpenFileStore, disk: FullDisk) -> None:
    store = open_store(keywords={"allocate": disk}, mapped_file_size_commit_log=1 << 20)
    put(store, *[small() for _ in range(10)])
    disk.full = True
    assert store.put_message(small()).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert (store.max_physical_offset(), disk.refused) == (10 * RECORD, [200, 20])


def test_last_free_blocks_are_used(open_store: OpenFileStore, disk: FullDisk) -> None:
    store = open_store(keywords={"allocate": disk}, mapped_file_size_commit_log=1 << 20)
    disk.largest = 1000
    put(store, *[small() for _ in range(10)])
    assert store.max_offset_in_queue("TopicA", 0) == 10


def test_recovery_without_space_says_so_and_frees_the_directory(open_store: OpenFileStore, disk: FullDisk) -> None:
    store = open_store()
    put(store, small())
    store.put_message(small())
    store.close()
    for queue in store._queues:
        queue.destroy()
    disk.full = True
    with pytest.raises(StoreFull, match="no space for more data"):
        open_store(keywords={"allocate": disk})
    disk.full = False
    assert open_store().max_offset_in_queue("TopicA", 0) == 2


def test_full_disk_is_logged_once(open_store: OpenFileStore, disk: FullDisk, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(keywords={"allocate": disk}, commit_log_allocation_step=1)
    disk.full = True
    for _ in range(5):
        store.put_message(small())
    assert len([record for record in caplog.records if "takes no messages" in record.message]) == 1
    disk.full = False
    put(store, small())
    disk.full = True
    for _ in range(100):
        store.put_message(small())
    assert len([record for record in caplog.records if "takes no messages" in record.message]) == 2


def test_reserving_raises_a_store_error(tmp_path: Any, disk: FullDisk) -> None:
    file = MappedFile.create(str(tmp_path / "f"), 0, 8192, disk)
    disk.full = True
    with pytest.raises(StoreFull, match="No space left on device"):
        file.reserve(1, 4096)
    assert file.allocated == 0
