"""Exports whose drivers are killed, in a few kills: `python -m tests.spark_proof.export_points` has more."""

from __future__ import annotations

import multiprocessing
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_proof.export_driver import PRELOADED, Java
from tests.spark_proof.export_points import KINDS, Exports


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_driver_leaves_no_gap_and_no_message_twice(session: SparkSession, tmp_path: Path, kind: str) -> None:
    multiprocessing.set_forkserver_preload(PRELOADED)
    exports = Exports(kind, tmp_path, Java.of(session), random.Random(7))
    exports.run(2)
    assert exports.problems == []
    assert (exports.kills.total(), exports.checks) == (2, 1)
    assert len(exports._places()) == len(exports.written)
