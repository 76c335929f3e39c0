"""Measures the cost of the store: append, reading, recovery, searching by key; with the disk's and the memory's limit beside it.

.venv/bin/python -m tests.bench.bench_store [--messages 100000] [--dir DIRECTORY]

Flushing is asynchronous, Apache's default, but for the rows that say otherwise. Unlike Apache's figures these are of one
thread with nothing on the network: the store alone.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator

from tests.support.bench_stores import (
    HEADLINE,
    copy_limit,
    disk_limit,
    fill,
    messages,
    open_store,
    row,
    seconds_of,
    temporary_folder,
)
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.message_store import FileMessageStore

BODIES = (128, 4096)
TOPICS = (1, 1000)
PULL_COUNT = 32
PULL_BYTES = 1 << 18
SEARCHES = 2000
LARGE_FEWER = 4
"""Divides the number of messages if they are large."""


def append(folder: str, count: int, topics: int, body_bytes: int) -> Iterator[str]:
    """Put messages, dispatching every 32."""
    store = open_store(folder)
    made = list(messages(count, topics, body_bytes))
    fill(store, list(messages(topics * 4, topics, body_bytes)))
    before = store.max_physical_offset()
    seconds = seconds_of(lambda: fill(store, made))
    size = store.max_physical_offset() - before
    yield row(f"append, {topics} topic{'s' if topics > 1 else ''}, {body_bytes} B", seconds, count, size)
    store.close()


def append_synchronously(folder: str, count: int) -> Iterator[str]:
    """The bytes of 32 messages on disk, then the next 32: one sender that waits for each flush."""
    store = open_store(folder)
    made = list(messages(count, 1, 4096))
    fill(store, made[:1])
    descriptor = os.open(os.path.join(folder, "commitlog", f"{0:020d}"), os.O_RDONLY)

    def put() -> None:
        for start in range(0, count, 32):
            fill(store, made[start : start + 32])
            os.fdatasync(descriptor)

    seconds = seconds_of(put)
    os.close(descriptor)
    yield row("append, 4096 B, fdatasync after each 32", seconds, count, store.max_physical_offset())
    store.close()


def _pull(store: FileMessageStore, begin: int, end: int) -> int:
    """Read queue 0 of the first topic and copy each answer's records, as a socket does; returns the bytes."""
    size = 0
    while begin < end:
        found = store.get_message("Bench0", 0, begin, PULL_COUNT, PULL_BYTES, None)
        size += len(b"".join(found.records))
        begin = found.next_begin_offset
    return size


def read(folder: str, count: int) -> Iterator[str]:
    """Pull a queue's newest part, then its oldest, at last after the page cache was told to drop the log."""
    store = open_store(folder)
    fill(store, list(messages(count, 1, 1024)))
    end = store.max_offset_in_queue("Bench0", 0)
    half = end // 2
    for name, begin, stop in (("new", half, end), ("old, in the page cache", 0, half)):
        size = _pull(store, begin, stop)
        seconds = seconds_of(lambda begin=begin, stop=stop: _pull(store, begin, stop))  # type: ignore[misc]
        yield row(f"pull {name}, 1024 B, 32 a time", seconds, stop - begin, size)
    store.close()
    _drop_from_cache(os.path.join(folder, "commitlog"))
    again = open_store(folder)
    seconds = seconds_of(lambda: _pull(again, 0, half))
    yield row("pull old, from the disk, 1024 B, 32 a time", seconds, half, size)
    again.close()


def _drop_from_cache(directory: str) -> None:
    for name in os.listdir(directory):
        descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def recover(folder: str, count: int) -> Iterator[str]:
    """Start after a clean stop, and after a crash that left all of the log to be checked."""
    store = open_store(folder)
    size = fill(store, list(messages(count, 4, 1024)))
    store.close()
    seconds = seconds_of(store.start)
    checked = store.recovery_report.records_checked
    yield f"{f'start after a clean stop, {size >> 20} MiB of log':44} {seconds:10.3f} s in all, {checked:,} records checked"
    store.close()
    open(store.config.paths.abort, "w").close()
    os.unlink(store.config.paths.checkpoint)
    seconds = seconds_of(store.start)
    checked = store.recovery_report.records_checked
    yield row(
        f"start after a crash, {size >> 20} MiB to check", seconds, max(checked, 1), size, f"{seconds:.3f} s in all"
    )
    store.close()


def search(folder: str, count: int) -> Iterator[str]:
    """Find messages by their unique keys, spread over all of the index."""
    store = open_store(folder)
    made: list[InnerMessage] = list(messages(count, 4, 128))
    fill(store, made)
    step = max(1, count // SEARCHES)
    wanted = [(one.topic, one.property_map["UNIQ_KEY"]) for one in made[::step]]
    store.query_message(*wanted[0], 32, 0, 1 << 62)

    def find() -> None:
        for topic, key in wanted:
            store.query_message(topic, key, 32, 0, 1 << 62)

    yield row(f"search by unique key among {count:,}", seconds_of(find), len(wanted), 0)
    store.close()


def limits(folder: str) -> Iterator[str]:
    """Measure the limits of the machine."""
    yield f"{'disk: 1 MiB writes, fdatasync after each':44} {'':10} {'':14} {disk_limit(folder):10,.0f}"
    yield f"{'disk: 128 KiB writes, fdatasync after each':44} {'':10} {'':14} {disk_limit(folder, 16 << 20, 128 << 10):10,.0f}"
    for body in BODIES:
        size = body + 180
        rate = copy_limit(size)
        yield f"{f'memory: copy of {size} B pieces':44} {size / rate:10.2f} {rate * 1e6 / size:14,.0f} {rate:10,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument(
        "--dir", default=None, help="on the disk that is to be measured; the temporary folder by default"
    )
    arguments = parser.parse_args()
    count = arguments.messages
    logging.disable(logging.WARNING)
    print(HEADLINE)
    for topics in TOPICS:
        for body in BODIES:
            with temporary_folder(arguments.dir) as folder:
                _print(append(folder, count if body < 1024 else count // LARGE_FEWER, topics, body))
    for case, messages_in_it in (
        (append_synchronously, count // 20),
        (read, count),
        (recover, count),
        (search, count),
    ):
        with temporary_folder(arguments.dir) as folder:
            _print(case(folder, messages_in_it))
    print("-- limits")
    with temporary_folder(arguments.dir) as folder:
        _print(limits(folder))


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
