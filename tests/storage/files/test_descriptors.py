"""Files that stay mapped, and errors that are not faults of the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.descriptors import FEWEST_MAPPED, MappedFiles, is_shortage, most_mapped
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.interfaces import GetStatus, PutStatus


def test_the_file_that_was_mapped_first_is_released_and_mapped_again_when_it_is_read(tmp_path: Path) -> None:
    mappings = MappedFiles(2)
    files = [MappedFile.create(str(tmp_path / str(number)), 0, 4096, mappings=mappings) for number in range(3)]
    for number, file in enumerate(files):
        file.reserve(1, 1)
        file.view[0] = number
    assert (len(mappings), [file.open_view is None for file in files]) == (2, [True, False, False])
    assert [file.readable[0] for file in files] == [0, 1, 2]
    for file in files:
        file.release()
        file.release()
    assert len(mappings) == 0


def test_a_store_with_more_queues_than_mappings_serves_all(
    open_store: OpenFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twisted_mq.storage.queues.queue_table.most_mapped", lambda: 8)
    store = open_store()
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(3):
        for queue_id in range(100):
            put(store, message("Wide", queue_id, b"%d" % turn))
    assert len(os.listdir("/proc/self/fd")) - before <= 2 * 8
    for queue_id in range(100):
        found = store.get_message("Wide", queue_id, 0, 32, 4096, None)
        assert (found.status, len(found.records)) == (GetStatus.FOUND, 3)
    store.close()
    again = open_store()
    assert {again.max_offset_in_queue("Wide", queue_id) for queue_id in range(100)} == {3}


def test_queues_stay_behind_while_no_file_can_be_opened_and_follow_later(
    open_store: OpenFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    put(store, message())

    def no_descriptor(file: MappedFile) -> memoryview:
        raise OSError(errno.EMFILE, "Too many open files", file.path)

    store.put_message(message("Other"))
    monkeypatch.setattr(MappedFile, "view", property(no_descriptor))
    store.dispatch()
    assert store.max_offset_in_queue("Other", 0) == 0
    monkeypatch.undo()
    store.dispatch()
    assert store.max_offset_in_queue("Other", 0) == 1


def test_a_third_of_the_descriptors_is_for_mapped_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twisted_mq.storage.files.descriptors.descriptor_limit", lambda: 300)
    assert most_mapped() == 100
    monkeypatch.setattr("twisted_mq.storage.files.descriptors.descriptor_limit", lambda: 10)
    assert most_mapped() == FEWEST_MAPPED


def test_a_process_without_memory_for_a_mapping_refuses_and_goes_on_later(
    open_store: OpenFileStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As under RLIMIT_AS: mmap fails, and its error names no file."""
    store = open_store()
    put(store, message())

    def no_memory(*_: object, **__: object) -> object:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("twisted_mq.storage.files.mapped_file.mmap.mmap", no_memory)
    size = store.config.mapped_file_size_commit_log
    stored, refused = 1, 0
    for _ in range(size // 1000 + 3):
        result = store.put_message(message(body=b"x" * 1000))
        stored += result.status is PutStatus.PUT_OK
        refused += result.status is PutStatus.OS_PAGE_CACHE_BUSY
    assert refused > 1
    (line,) = [one.getMessage() for one in caplog.records if "no messages for now" in one.getMessage()]
    assert "Cannot allocate memory" in line
    assert "/commitlog/" in line
    monkeypatch.undo()
    put(store, message(body=b"x" * 1000))
    store.dispatch()
    assert store.max_offset_in_queue("TopicA", 0) == stored + 1
    store.close()
    assert open_store().max_offset_in_queue("TopicA", 0) == stored + 1


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/store/file"), True),
        (OSError(errno.ENFILE, "Too many open files in system", "/store/file"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), False),
        (OSError(errno.EIO, "Input/output error", "/store/file"), False),
    ],
    ids=["EMFILE", "ENFILE", "ENOMEM of a sync", "EIO"],
)
def test_what_passes_is_a_file_that_could_not_be_opened(error: OSError, passes: bool) -> None:
    assert is_shortage(error) is passes


def test_too_many_open_files_are_not_called_a_full_disk() -> None:
    assert "ulimit -n" in str(StoreFull("/store", OSError(errno.EMFILE, os.strerror(errno.EMFILE))))
    assert "free space" in str(StoreFull("/store", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
