"""A worker's garbage is looked for among what tasks made, not among modules."""

from __future__ import annotations

import subprocess
import sys

ASKED = """
import gc
from pathlib import Path
import twisted_mq.spark.source.store_reader as reader
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.stores import Store
options = read_options({"path": "."})
loaded = len(gc.get_objects())
kept = []
for _ in range(2):
    assert not list(reader.as_batches(Store("file:///nowhere", "store"), (), options.columns, options))
    kept.append(gc.get_freeze_count())
print(loaded, len(gc.get_objects()), *kept)
"""


def test_modules_are_kept_out_of_garbage_collection_once() -> None:
    run = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True)
    loaded, left, *kept = map(int, run.stdout.split())
    assert kept[0] == kept[1] >= loaded > 100 * left
