"""Reads beside a broker that writes: each an exact prefix of the log, with all that was acknowledged before it began."""

from __future__ import annotations

import mmap
import threading
from pathlib import Path

from tests.spark.stores import StoreWriter
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader

READS = 25


def test_each_read_is_a_prefix_of_the_log_without_damage(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    for number in range(12_000):
        writer.append(body=b"x" * (number * 37 % 400), properties={"TAGS": "a"})
    contents = {first: bytes(content) for first, content in writer._log.items()}
    directory = tmp_path / "store" / "commitlog"
    directory.mkdir(parents=True)
    ends = [*writer.positions[1:], writer.position]
    acknowledged = [0]
    stopped = threading.Event()

    def write() -> None:
        """Into mapped files, which are made one ahead and filled piece by piece, as a broker does."""
        for first in sorted(contents):
            path = directory / f"{first:020d}"
            for one in (path, directory / f"{first + (1 << 20):020d}"):
                if not one.exists():
                    one.write_bytes(bytes(1 << 20))
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
                for start in range(0, 1 << 20, 1777):
                    mapped[start : start + 1777] = contents[first][start : start + 1777]
                    reached = min(first + start + 1777, first + (1 << 20))
                    while acknowledged[0] < len(ends) and ends[acknowledged[0]] <= reached:
                        acknowledged[0] += 1
                    if stopped.is_set():
                        return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(READS):
            before = acknowledged[0]
            options = {"path": str(tmp_path / "store"), "failOnDamage": "true", "maxPartitionBytes": "300k"}
            reader = StoreReader(read_options(options), ["physicalOffset"])
            batches = [batch for split in reader.partitions() for batch in reader.read(split)]
            found = [offset for batch in batches for offset in batch["physicalOffset"].to_pylist()]
            assert found == writer.positions[: len(found)]
            assert before <= len(found)
    finally:
        stopped.set()
        thread.join()
