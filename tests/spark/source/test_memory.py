"""Memory of a task: a window of its part, independent of the size of the part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.messages.message import Message

MEBIBYTE = 1 << 20
READ = r"""
import re, sys
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader
options = read_options({"path": sys.argv[1], "maxPartitionBytes": "1g", "columns": "all"})
reader = StoreReader(options, options.columns)
rows = sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split))
print(rows, re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1])
"""
INNER = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG


def read(store: str) -> tuple[int, int]:
    """Rows, and the largest resident size in KiB, of a process that reads all of a store (ru_maxrss would be its parent's)."""
    done = subprocess.run([sys.executable, "-c", READ, store], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows, largest = map(int, done.stdout.split())
    return rows, largest


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is on Linux alone")
def test_a_large_part_is_read_in_little_memory(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "plain", file_size=96 * MEBIBYTE)
    body = b"x" * 60_000
    while writer.position < 90 * MEBIBYTE:
        writer.append(body=body, properties={"TAGS": "a"})
    rows, largest = read(writer.write())
    assert rows == len(writer.positions)
    assert largest < 300 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is on Linux alone")
def test_eight_inner_batches_of_four_mebibytes(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "inner", file_size=64 * MEBIBYTE)
    batch = encode_batch([Message("Batches", b"x" * 1024, 0, {"TAGS": "a"})] * 3900)
    for _ in range(8):
        writer.append("Batches", batch, sys_flag=INNER)
    rows, largest = read(writer.write())
    assert rows == 8 * 3900
    assert largest < 600 * 1024
