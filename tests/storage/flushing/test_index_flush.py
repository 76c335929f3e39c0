"""A full index file reaches the disk before the checkpoint says so, and the log before both."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import START_MS, SettableClock, config, message, put
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.storage.appending.gate import Gate
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.flushing.flush import FlushService
from twisted_mq.storage.flushing.index_flush import IndexFlush
from twisted_mq.storage.index.index_service import IndexService
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.message_store import FileMessageStore

SIZES = IndexSizes(5, 4)


class Syncs:
    """Replacement of fdatasync that records the names of files in order; index files may fail."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.failing = False

    def __call__(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.names.append(path.parent.name if path.parent.name in ("commitlog", "index") else path.name)
        if self.failing and path.parent.name == "index":
            raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.fixture
def parts(tmp_path: Path) -> Any:
    """A log with one record, an index with two full files and one entry more, a flush service that is not started."""
    settings = config(tmp_path, flush_checkpoint_interval_ms=0)
    store = FileMessageStore(settings, SettableClock(), sync=lambda descriptor: None)
    store.start()
    put(store, message())
    store.close()
    log = CommitLog(settings.paths.commit_log, settings.mapped_file_size_commit_log, 4096)
    log.load()
    log.flushed_offset = 0
    index = IndexService(settings.paths.index, SIZES, SettableClock())
    index.put([(number, number, START_MS + 1000 * number) for number in range(7)])
    checkpoint = Checkpoint(settings.paths.checkpoint)
    syncs = Syncs()
    under_way = IndexFlush(index, checkpoint, syncs)
    flush = FlushService(settings, log, checkpoint, Gate(), lambda: (), lambda: 0, index=under_way, sync=syncs)
    return flush, checkpoint, syncs, under_way


def saved(checkpoint: Checkpoint) -> int:
    return Checkpoint.load(checkpoint.path).index_msg_timestamp


def test_log_then_index_file_then_checkpoint(parts: Any) -> None:
    flush, checkpoint, syncs, under_way = parts
    flush.turn()
    under_way.wait()
    flush.turn()
    assert [name for name in syncs.names if name != "checkpoint"] == ["commitlog", "index", "index"]
    assert syncs.names[-1] == "checkpoint"  # one more may lie between the two index files
    assert saved(checkpoint) == START_MS + 5000


def test_the_last_file_is_flushed_at_the_end_and_not_in_the_checkpoint(parts: Any) -> None:
    flush, checkpoint, syncs, _ = parts
    flush.stop()
    assert syncs.names == ["commitlog", "index", "index", "index", "checkpoint"]
    assert saved(checkpoint) == START_MS + 5000


def test_a_file_that_cannot_be_flushed_is_not_trusted_and_stops_nothing(parts: Any) -> None:
    flush, checkpoint, syncs, under_way = parts
    syncs.failing = True
    flush.turn()
    under_way.wait()
    syncs.failing = False
    flush.turn()
    flush.stop()
    assert (flush.error, checkpoint.index_msg_timestamp) == (None, 0)
    assert syncs.names.count("index") == 2
