"""Reads beside a live broker, a few of them; and what the program calls wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.spark.live.brokers import Broker
from tests.spark_proof.reads import KINDS, LOG_FILE_BYTES, Checker, Sender, body_of, prove
from tests.support.embedded import EmbeddedProcess


def test_reads_beside_a_live_broker_are_prefixes(tmp_path: Path) -> None:
    options = (f"mapped_file_size_commit_log={LOG_FILE_BYTES}",)
    with EmbeddedProcess(str(tmp_path / "store"), options=options) as server:
        said = prove(None, server, seconds=1, reads=2 * len(KINDS), rate=400)
    assert said.endswith("each a prefix of what was acknowledged, no damage")


def rows(numbers: list[int], bodies: list[bytes], crc_ok: bool = True) -> pa.Table:
    return pa.table(
        {
            "queueId": pa.array([0] * len(numbers), pa.int32()),
            "queueOffset": pa.array(numbers, pa.int64()),
            "physicalOffset": pa.array([100 * number for number in numbers], pa.int64()),
            "crcOk": pa.array([crc_ok] * len(numbers), pa.bool_()),
            "body": pa.array(bodies, pa.binary()),
        }
    )


@pytest.mark.parametrize(
    ("found", "least", "reason"),
    [
        (rows([0], [body_of(0, 0)]), 2, "queue 0: 1 rows, 2 acknowledged before"),
        (rows([0, 1, 2, 3], [body_of(0, number) for number in range(4)]), 1, "queue 0: 4 rows"),
        (rows([0, 2], [body_of(0, 0), body_of(0, 2)]), 1, "queue 0: other queue offsets"),
        (rows([0, 1], [body_of(0, 0), b"other"]), 1, "queue 0: other bodies"),
        (rows([0], [body_of(0, 0)], crc_ok=False), 1, "a body with a wrong CRC"),
    ],
)
def test_what_is_no_prefix_is_told(found: pa.Table, least: int, reason: str) -> None:
    sender = Sender(Broker("n:1", "b:1"), 0, 1.0, sent=3)
    with pytest.raises(AssertionError, match=reason):
        Checker([sender]).check(found, [least])


def test_reads_of_other_places_are_told() -> None:
    sender = Sender(Broker("n:1", "b:1"), 0, 1.0, sent=3)
    checker = Checker([sender])
    checker.check(rows([0, 1], [body_of(0, 0), body_of(0, 1)]), [2])
    checker.last = np.array([0, 100, 200])
    checker.check_prefixes()
    checker.last = np.array([0, 50, 100])
    with pytest.raises(AssertionError, match="a read of 2 rows was no prefix of the log"):
        checker.check_prefixes()
