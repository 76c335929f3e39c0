"""Measures a Spark worker without Spark: processor time of StoreReader over one part, plain and compiled in turns.

    python -m tests.bench.bench_worker [--megabytes 128] [--bodies 128] [--times 7]

Each figure is the least of the runs, in microseconds a row. Both forms read the same file, which is in the system's cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.written_store import write_store
from twisted_mq.protocol.layouts import compiled
from twisted_mq.spark.columns.schema import COLUMN_NAMES
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader

COLUMNS = {"one column": ("queueOffset",), "all columns": COLUMN_NAMES}


def microseconds_a_row(store: str, part: int, columns: Sequence[str]) -> float:
    """Return the processor time of one read."""
    reader = StoreReader(read_options({"path": store, "maxPartitionBytes": str(part)}), columns)
    began = time.process_time()
    rows: int = sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split))
    seconds = time.process_time() - began
    return seconds / rows * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=128, help="size of the file and the part")
    parser.add_argument("--bodies", type=int, default=128, help="body size in bytes")
    parser.add_argument("--times", type=int, default=7, help="runs of each form")
    arguments = parser.parse_args()
    forms = {"plain": compiled.PLAIN, "compiled": compiled.installed()}
    size = arguments.megabytes << 20
    with tempfile.TemporaryDirectory() as folder:
        write_store(Path(folder), size, arguments.bodies)
        for words, names in COLUMNS.items():
            found: dict[str, list[float]] = {form: [] for form in forms}
            for _ in range(arguments.times):
                for form, compiled.forms in forms.items():
                    found[form].append(microseconds_a_row(folder, 2 * size, names))
            print(words, *(f"{form} {min(times):.3f}" for form, times in found.items()), sep="  ")


if __name__ == "__main__":
    main()
