"""Large stores: what planning costs, which files and bytes are read, how much memory a worker takes.

    .venv/bin/python -m tests.spark_proof.scale [--files 100000] [--megabytes 1024] [--dir /dev/shm] [planning hour topic ...]

Large files are sparse: a record at the begin, or none, and holes behind. Times are this machine's, bytes and files are not.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
from pyspark.sql import SparkSession

from tests.bench.bench_spark import into_noop, run
from tests.bench.written_store import write_store
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.queue_entry import pack_entry
from twisted_mq.protocol.layouts.record import encode_blank
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.spark.session import local_session
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader

GIBIBYTE = 1 << 30
TEN_TB_FILES = 10 << 10
BORN_MS = 1_795_216_734_968
HOUR_MS = 3_600_000
HOST = pack_host("10.0.0.1", 10911)


@attrs.define
class Reads:
    """Reads of logs by this process: bytes by path."""

    bytes: Counter[str] = attrs.field(factory=Counter)
    _read: Callable[[OpenLog, int, int], bytes] = attrs.field(init=False, default=OpenLog._read)

    def __enter__(self) -> Reads:
        self._read = OpenLog._read
        read, counts = self._read, self.bytes

        def counting(log: OpenLog, length: int, position: int) -> bytes:
            data = read(log, length, position)
            counts[log.path] += len(data)
            return data

        OpenLog._read = counting  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        OpenLog._read = self._read  # type: ignore[method-assign]


def record(physical_offset: int, time_ms: int = BORN_MS, topic: bytes = b"Large", body: bytes = b"body") -> bytes:
    return encode_record(
        topic, body, b"TAGS\x01a\x02", queue_id=0, queue_offset=0, physical_offset=physical_offset, born_timestamp=time_ms,
        born_host=HOST, store_timestamp=time_ms, store_host=HOST,
    )  # fmt: skip


def sparse_files(folder: str, count: int, content: Callable[[int], bytes]) -> None:
    """So many commit log files of a gibibyte, each with what it begins with."""
    log = Path(folder, "commitlog")
    log.mkdir()
    for number in range(count):
        with open(log / f"{number * GIBIBYTE:020d}", "wb") as file:
            file.write(content(number))
            file.truncate(GIBIBYTE)


def planning(session: SparkSession, folder: str, arguments: argparse.Namespace) -> Iterator[str]:
    """Plan sparse files, of which only names and sizes are read, and the end of the last one."""
    files = arguments.files
    last = (files - 1) * GIBIBYTE
    sparse_files(folder, files, lambda number: record(last) if number == files - 1 else b"")
    with Reads() as reads:
        began, used = time.perf_counter(), time.process_time()
        splits = StoreReader(read_options({"path": folder}), ["topic"]).partitions()
        seconds, processor = time.perf_counter() - began, time.process_time() - used
    assert len(splits) <= 20_000, len(splits)
    assert len(reads.bytes) == 1 and sum(reads.bytes.values()) < 1 << 21, reads.bytes
    yield (
        f"{files:,} files of 1 GiB: {len(splits):,} tasks planned in {seconds:.2f} s ({processor:.2f} s of processor), "
        f"{sum(reads.bytes.values()):,} bytes read, of the last file's end"
    )
    began = time.perf_counter()
    tasks = session.read.format("rocketmq").option("columns", "topic").load(folder).rdd.getNumPartitions()
    yield f"the same in Spark, load() to {tasks:,} tasks that Java knows: {time.perf_counter() - began:.2f} s"


def hour(session: SparkSession, folder: str, arguments: argparse.Namespace) -> Iterator[str]:
    """10 TB of which a file holds six minutes, its first record at the begin, and a blank one behind."""
    files, step = TEN_TB_FILES, HOUR_MS // 10

    def content(number: int) -> bytes:
        first = record(number * GIBIBYTE, BORN_MS + number * step)
        return first + encode_blank(GIBIBYTE - len(first))

    sparse_files(folder, files, content)
    begin = BORN_MS + 5000 * step + 1000
    options = {"path": folder, "startTime": str(begin), "endTime": str(begin + HOUR_MS), "maxPartitionBytes": "1g"}
    with Reads() as planned:
        reader = StoreReader(read_options(options), ["physicalOffset"])
        splits = reader.partitions()
    with Reads() as opened:
        found = [offset for split in splits for batch in reader.read(split) for offset in batch[0].to_pylist()]
    needed = {offset // GIBIBYTE for offset in found}
    assert needed == set(range(5001, 5011)), needed
    assert len(opened.bytes) <= len(needed) + 3, opened.bytes
    yield (
        f"an hour of {files:,} files: {len(needed)} files hold it, tasks open {len(opened.bytes)} and read "
        f"{sum(opened.bytes.values()):,} bytes; to choose them {len(planned.bytes)} were opened for "
        f"{sum(planned.bytes.values()):,} bytes"
    )


def topic(session: SparkSession, folder: str, arguments: argparse.Namespace) -> Iterator[str]:
    """A log in which every thousandth message is of a small topic."""
    size, body = arguments.megabytes << 20, os.urandom(1000)
    entries, position, number = bytearray(), 0, 0
    Path(folder, "commitlog").mkdir()
    with open(Path(folder, "commitlog", f"{0:020d}"), "wb") as file:
        while position < size:
            small = number % 1000 == 500
            one = record(position, BORN_MS + number, b"Small" if small else b"Large", body)
            if small:
                entries += pack_entry(position, len(one), 97)
            file.write(one)
            position, number = position + len(one), number + 1
    queue = Path(folder, "consumequeue", "Small", "0")
    queue.mkdir(parents=True)
    (queue / f"{0:020d}").write_bytes(entries)
    rows = len(entries) // 20
    counted = {}
    for through in ("log", "queues"):
        with Reads() as reads:
            reader = StoreReader(read_options({"path": folder, "topic": "Small", "through": through}), ["queueOffset"])
            found = sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split))
        assert found == rows, (through, found)
        counted[through] = sum(reads.bytes.values())
    frames = {
        name: session.read.format("rocketmq").options(topic="Small", through=name).load(folder)
        for name in ("log", "queues")
    }
    runs = {name: run(rows, into_noop(frame)) for name, frame in frames.items()}
    bytes_times, times = counted["log"] / counted["queues"], runs["log"].seconds / runs["queues"].seconds
    used = {name: (one.java + one.workers) for name, one in runs.items()}
    assert bytes_times >= 20, counted
    yield (
        f"a topic of 0.1 % of {position >> 20} MiB, {rows:,} messages: {counted['log']:,} bytes by a scan, "
        f"{counted['queues']:,} through queues, {bytes_times:.0f} times fewer; in Spark {runs['log'].seconds:.2f} s and "
        f"{runs['queues'].seconds:.2f} s, {times:.0f} times; processor {used['log']:.2f} and {used['queues']:.2f} s, "
        f"{used['log'] / used['queues']:.0f} times"
    )


def memory(session: SparkSession, folder: str, arguments: argparse.Namespace) -> Iterator[str]:
    """A file that one task reads, all columns; the largest resident size of Python's workers, mapped pages included."""
    size, body, position, number = arguments.megabytes << 20, os.urandom(100), 0, 0
    Path(folder, "commitlog").mkdir()
    with open(Path(folder, "commitlog", f"{0:020d}"), "wb") as file:
        while position < size:
            one = record(position, BORN_MS + number, b"Large", body * (1 if number % 100 else 600))
            file.write(one)
            position, number = position + len(one), number + 1
    options = {"maxPartitionBytes": "4g", "columns": "all"}
    frame = session.read.format("rocketmq").options(**options).load(folder)
    assert frame.rdd.getNumPartitions() == 1
    into_noop(frame)()
    largest = max(peaks())
    assert largest <= 300 << 10, largest
    yield f"one task of {position >> 20} MiB, {number:,} rows of all columns: a worker's largest size {largest >> 10} MiB"


def stream(session: SparkSession, folder: str, arguments: argparse.Namespace) -> Iterator[str]:
    """A stream over a log until it has all of it; the first run, in which Java and the workers get warm, is left out."""
    rows = write_store(Path(folder, "store"), arguments.megabytes << 20, 128)
    frame = session.readStream.format("rocketmq").option("startingOffsets", "earliest").load(str(Path(folder, "store")))
    for name in ("warm", "timed"):
        began = time.perf_counter()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(Path(folder, name)))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began
        assert sum(progress["numInputRows"] for progress in query.recentProgress) == rows
    yield f"a stream of {rows:,} rows of default columns, AvailableNow: {seconds:.2f} s, {rows / seconds:,.0f} rows a second"


def peaks() -> Iterator[int]:
    """The largest resident size in KiB of each Python process below Java's."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
            if b"pyspark.daemon" in words and int((path / "stat").read_text().rpartition(") ")[2].split()[1]) != 1:
                found = re.search(r"VmHWM:\s*(\d+)", (path / "status").read_text())
                if found is not None and is_ours(int(path.name)):
                    yield int(found[1])
        except OSError:
            continue  # it ended meanwhile


def is_ours(pid: int) -> bool:
    """Return True if a process is a descendant of this one."""
    while pid > 1 and pid != os.getpid():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    return pid == os.getpid()


PROOFS = {one.__name__: one for one in (planning, hour, topic, memory, stream)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proofs", nargs="*", default=[*PROOFS], help=", ".join(PROOFS))
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--dir", help="where stores are made for the time of a proof")
    arguments = parser.parse_args()
    session = local_session("scale", 2)
    for name in arguments.proofs:
        folder = tempfile.mkdtemp(dir=arguments.dir)
        try:
            for line in PROOFS[name](session, folder, arguments):
                print(line, flush=True)
        finally:
            shutil.rmtree(folder)
    session.stop()


if __name__ == "__main__":
    main()
