"""Counts of reads of a store's files, at the calls of Arrow."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from twisted_mq.spark.source.open_log import OpenLog


@attrs.define
class ReadCounts:
    """Bytes by path."""

    counts: Counter[str] = attrs.field(factory=Counter)
    end_search: int = 1 << 21
    """More than the search for a log's end reads."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def files(self) -> set[str]:
        """The names of the files that were read."""
        return {path[-20:] for path in self.counts}

    def of(self, directory: str) -> int:
        """The bytes read of a directory's files."""
        return sum(count for path, count in self.counts.items() if f"/{directory}/" in path)

    def take(self) -> ReadCounts:
        """Return the counts so far, and start again."""
        taken = ReadCounts(Counter(self.counts))
        self.counts.clear()
        return taken


@pytest.fixture
def read_counts(monkeypatch: pytest.MonkeyPatch) -> ReadCounts:
    """Count the reads of logs by this test in this process."""
    counted = ReadCounts()
    read = OpenLog._read

    def counting(log: OpenLog, length: int, position: int) -> bytes:
        data = read(log, length, position)
        counted.counts[log.path] += len(data)
        return data

    monkeypatch.setattr(OpenLog, "_read", counting)
    return counted
