"""Stores for benchmarks, and the limits of the machine that their figures stand beside."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator

from twisted_mq.protocol.text.java import tags_code
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.message_store import FileMessageStore

_MEGABYTE = 1_000_000
TAGS = "TagA"
DISPATCH_EVERY = 32
"""So many messages a network read brings under load."""


@contextlib.contextmanager
def temporary_folder(parent: str | None) -> Iterator[str]:
    """A folder that is gone afterwards."""
    folder = tempfile.mkdtemp(prefix="bench-store-", dir=parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def now_ms() -> int:
    """The machine's clock."""
    return int(time.time() * 1000)


def open_store(folder: str, **fields: object) -> FileMessageStore:
    """Open a store with Apache's defaults except `fields`."""
    store = FileMessageStore(StoreConfig(store_path_root_dir=folder, **fields), now_ms)  # type: ignore[arg-type]
    store.start()
    return store


def messages(count: int, topics: int, body_bytes: int) -> Iterator[InnerMessage]:
    """Messages over four queues of each topic, with a unique key and tags as Apache's client sets them."""
    body, code = os.urandom(body_bytes), tags_code(TAGS)
    for number in range(count):
        unique = f"C0000202201A4E0E2F2A66E0{number:08X}"
        properties = f"UNIQ_KEY\x01{unique}\x02WAIT\x01true\x02TAGS\x01{TAGS}\x02".encode()
        topic, queue_id = f"Bench{number % topics}", number // topics % 4
        yield InnerMessage(topic, queue_id, body, properties, {"UNIQ_KEY": unique, "TAGS": TAGS}, code)


def fill(store: FileMessageStore, made: list[InnerMessage]) -> int:
    """Put and dispatch; returns the log's end."""
    for start in range(0, len(made), DISPATCH_EVERY):
        for message in made[start : start + DISPATCH_EVERY]:
            store.put_message(message)
        store.dispatch()
    return store.max_physical_offset()


def seconds_of(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def disk_limit(folder: str, size: int = 64 << 20, block: int = 1 << 20) -> float:
    """MB/s of writing to a file in blocks, each put on disk by fdatasync."""
    data = os.urandom(block)
    descriptor = os.open(os.path.join(folder, "limit"), os.O_RDWR | os.O_CREAT)
    try:
        os.posix_fallocate(descriptor, 0, size)

        def write() -> None:
            for position in range(0, size, block):
                os.pwrite(descriptor, data, position)
                os.fdatasync(descriptor)

        return size / _MEGABYTE / seconds_of(write)
    finally:
        os.close(descriptor)
        os.unlink(os.path.join(folder, "limit"))


def copy_limit(record_bytes: int, size: int = 256 << 20) -> float:
    """MB/s of copying records of that size into mapped memory that was touched before, a slice assignment each."""
    target = mmap.mmap(-1, size)
    view, record = memoryview(target), os.urandom(record_bytes)
    places = range(0, size - record_bytes, record_bytes)
    view[:] = bytes(size)

    def copy() -> None:
        for place in places:
            view[place : place + record_bytes] = record

    return len(places) * record_bytes / _MEGABYTE / seconds_of(copy)


def row(name: str, seconds: float, count: int, size: int, note: str = "") -> str:
    """A line of a table: what, us each, how many a second, MB/s."""
    each = seconds / max(count, 1) * 1e6
    rate = size / _MEGABYTE / seconds
    return f"{name:44} {each:10.2f} {count / seconds:14,.0f} {rate:10,.0f}   {note}".rstrip()


HEADLINE = f"{'what':44} {'us each':>10} {'a second':>14} {'MB/s':>10}"
