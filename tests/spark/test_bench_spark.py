"""The benchmark compares like with like: both readers give the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.bench_spark import FEW, ConstructRowReader, PremadeReader
from tests.bench.written_store import write_store
from twisted_mq.spark.columns.schema import COLUMN_NAMES
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_of_construct_equal_ours(tmp_path: Path, compiled: bool) -> None:
    write_store(tmp_path, 20_000, 128)
    options = {"path": str(tmp_path), "maxPartitionBytes": "8k"}
    ours = StoreReader(read_options(options), list(COLUMN_NAMES))
    theirs = ConstructRowReader(options, compiled)
    assert theirs.partitions() == ours.partitions()
    assert len(ours.partitions()) == 3
    rows = []
    for split in ours.partitions():
        for batch in ours.read(split):
            rows += [tuple({**row, "properties": dict(row["properties"])}.values()) for row in batch.to_pylist()]
    assert [row for split in theirs.partitions() for row in theirs.read(split)] == rows
    assert len(rows) > 50


def test_premade_batches_are_about_as_many_rows(tmp_path: Path) -> None:
    write_store(tmp_path, 200_000, 128)
    options = read_options({"path": str(tmp_path), "columns": FEW})
    premade, ours = PremadeReader(options), StoreReader(options, options.columns)
    rows = [
        sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split))
        for reader in (premade, ours)
    ]
    assert rows[0] == rows[1] > 500
