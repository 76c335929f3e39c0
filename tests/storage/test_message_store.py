"""The life of a file store: files it makes, starts that fail, views that outlive it, a process that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.conftest import OpenFileStore, SettableClock, config, message, put
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.errors import WrongFileSize
from twisted_mq.storage.interfaces import GetStatus
from twisted_mq.storage.message_store import FileMessageStore

REPOSITORY = Path(__file__).parents[2]

WRITER = """
import sys, threading
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.message_store import FileMessageStore

store = FileMessageStore(StoreConfig(store_path_root_dir=sys.argv[1], mapped_file_size_commit_log=65536,
    mapped_file_size_consume_queue=2000, flush_disk_type=FlushDiskType.SYNC_FLUSH), lambda: 1_700_000_000_000)
store.start()
number = 0
while True:
    acknowledged = threading.Event()
    body = b"%d" % number + bytes(100)
    result = store.put_message(InnerMessage("TopicA", number % 3, body, b"", {}, 0))
    store.when_flushed(result.end_offset, lambda done: acknowledged.set() if done else None)
    acknowledged.wait()
    store.dispatch()
    print(number, flush=True)
    number += 1
"""


def test_directory_is_laid_out_as_apaches(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, *[message(body=bytes(500), queue_id=2) for _ in range(12)])
    store.close()
    found = sorted(
        str(path.relative_to(tmp_path / "store")) for path in (tmp_path / "store").rglob("*") if path.is_file()
    )
    assert found == [
        "checkpoint",
        f"commitlog/{0:020d}",
        f"commitlog/{4096:020d}",
        f"consumequeue/TopicA/2/{0:020d}",
        f"consumequeue/TopicA/2/{200:020d}",
        "lock",
    ]


def test_commit_log_may_lie_elsewhere(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(store_path_commit_log=str(tmp_path / "fast"))
    put(store, message())
    assert [path.name for path in (tmp_path / "fast").iterdir()] == [f"{0:020d}"]
    store.close()
    store.start()
    assert store.max_offset_in_queue("TopicA", 0) == 1


def test_start_that_fails_frees_the_directory_and_leaves_no_abort_file(
    open_store: OpenFileStore, tmp_path: Path, clock: SettableClock
) -> None:
    open_store().close()
    (tmp_path / "store" / "commitlog" / f"{0:020d}").write_bytes(bytes(17))
    for _ in range(2):
        with pytest.raises(WrongFileSize):
            open_store()
    assert not (tmp_path / "store" / "abort").exists()


def test_closing_with_views_outside_raises_nothing(open_store: OpenFileStore) -> None:
    store = open_store()
    put(store, message(body=b"kept"))
    records = store.get_message("TopicA", 0, 0, 32, 1 << 20, None).records
    store.close()
    store.start()
    put(store, message(body=b"later"))
    store.close()
    assert decode_message(records[0]).body == b"kept"


def test_store_that_was_never_started_is_closed_silently(tmp_path: Path, clock: SettableClock) -> None:
    store = FileMessageStore(config(tmp_path / "store"), clock)
    store.close()
    assert (store.is_open, (tmp_path / "store").exists()) == (False, False)


def test_acknowledged_messages_survive_a_killed_process(tmp_path: Path, clock: SettableClock) -> None:
    root = tmp_path / "store"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(200)]
    os.kill(writer.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in writer.communicate()[0].split()]
    settings = config(root, mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=2000)
    store = FileMessageStore(settings, clock)
    store.start()
    assert store.recovery_report.clean is False
    found = {number for queue_id in range(3) for number in numbers(store, queue_id)}
    assert set(acknowledged) - found == set()
    assert len(found) - len(acknowledged) in (0, 1)
    assert store.check() == []
    store.close()


def numbers(store: FileMessageStore, queue_id: int) -> list[int]:
    found, offset = [], 0
    while (result := store.get_message("TopicA", queue_id, offset, 32, 1 << 20, None)).status is GetStatus.FOUND:
        found += [int(decode_message(record).body.rstrip(b"\0")) for record in result.records]
        offset = result.next_begin_offset
    return found


def test_a_stop_deletes_the_files_of_all_dropped_queues(open_store: OpenFileStore) -> None:
    store = open_store()
    put(store, *[message(queue_id=queue_id) for queue_id in range(50)])
    store.delete_topics({"TopicA"})
    assert store.delete_more()
    root = store.config.store_path_root_dir
    store.close()
    assert os.listdir(os.path.join(root, "consumequeue")) == []
