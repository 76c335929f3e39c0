"""Measures the start of a store with many queues and a long log: after a clean stop, after a kill, and the stop.

.venv/bin/python -m tests.bench.bench_starts [--topics 10000] [--queues 4] [--files 100] [--dir DIRECTORY]

The log's files have 1 GiB, the queues' 6 MB. Both are sparse: each queue has five messages. The log is made without a
store, and is in the page cache. The syncs are those of single files and directories.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from unittest import mock

from tests.support.bench_stores import temporary_folder
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.queue_entry import pack_entry
from twisted_mq.protocol.layouts.record import encode_blank
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.paths import StorePaths, file_name
from twisted_mq.storage.files.system_calls import raise_descriptor_limit
from twisted_mq.storage.message_store import FileMessageStore

MESSAGES_A_QUEUE = 5
HOUR_MS = 3_600_000
HOST = pack_host("127.0.0.1", 10911)
CODE = tags_code("TagA")


def make_store(config: StoreConfig, topics: int, queues: int, files: int) -> None:
    """Write a store as a clean stop leaves it, whose messages are spread over the log's files."""
    paths, size, born = config.paths, config.mapped_file_size_commit_log, int(time.time() * 1000) - HOUR_MS
    entries: defaultdict[tuple[str, int], bytearray] = defaultdict(bytearray)
    total = topics * queues * MESSAGES_A_QUEUE
    os.makedirs(paths.commit_log)
    for file in range(files):
        records, position = [], 0
        for number in range(total * file // files, total * (file + 1) // files):
            place = number % (topics * queues)
            key = f"Topic{place // queues}", place % queues
            queue = entries[key]
            record = encode_record(
                key[0].encode(),
                b"x" * 100,
                b"TAGS\x01TagA\x02UNIQ_KEY\x01C0000202201A4E0E2F2A66E0%08X" % number,
                queue_id=key[1],
                queue_offset=len(queue) // len(pack_entry(0, 0, 0)),
                physical_offset=file * size + position,
                born_timestamp=born + number,
                born_host=HOST,
                store_timestamp=born + number,
                store_host=HOST,
            )
            queue += pack_entry(file * size + position, len(record), CODE)
            position += len(record)
            records.append(record)
        blank = encode_blank(size - position) if file < files - 1 else b""
        _write(os.path.join(paths.commit_log, file_name(file * size)), b"".join([*records, blank]), size)
    for (topic, queue_id), queue in entries.items():
        os.makedirs(paths.queue(topic, queue_id))
        _write(os.path.join(paths.queue(topic, queue_id), file_name(0)), queue, config.mapped_file_size_consume_queue)
    Checkpoint(paths.checkpoint, *[born + total] * 3).save()
    os.sync()


def _write(path: str, data: bytes | bytearray, size: int) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.truncate(size)


class Syncs:
    """Counts what is put on disk file by file."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, descriptor: int) -> None:
        self.count += 1
        os.fdatasync(descriptor)


def measured(name: str, syncs: Syncs, call: Callable[[], object]) -> str:
    """Return a row of the table."""
    syncs.count = 0
    began, processor = time.perf_counter(), time.process_time()
    call()
    wall, processor = time.perf_counter() - began, time.process_time() - processor
    return f"{name:32} {wall:10.2f} {processor:15.2f} {syncs.count:10,}"


def rows(config: StoreConfig) -> Iterator[str]:
    syncs = Syncs()
    with mock.patch.object(os, "fsync", syncs):
        for name in ("start after a clean stop", "start after a kill"):
            store = FileMessageStore(config, lambda: int(time.time() * 1000), sync=syncs)
            yield measured(name, syncs, store.start)
            yield measured("stop", syncs, store.close)
            _kill(config.paths)


def _kill(paths: StorePaths) -> None:
    """Leave the store as a killed process does."""
    with open(paths.abort, "w", encoding="ascii"):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--queues", type=int, default=4)
    parser.add_argument("--files", type=int, default=100, help="of 1 GiB each")
    parser.add_argument("--dir", default=None)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    raise_descriptor_limit()
    with temporary_folder(arguments.dir) as folder:
        config = StoreConfig(store_path_root_dir=os.path.join(folder, "store"))
        make_store(config, arguments.topics, arguments.queues, arguments.files)
        print(f"{'':32} {'seconds':>10} {'processor, s':>15} {'syncs':>10}")
        for row in rows(config):
            print(row, flush=True)


if __name__ == "__main__":
    main()
