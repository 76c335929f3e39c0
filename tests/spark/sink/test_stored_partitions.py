"""Stored partitions of a failed batch in a checkpoint, and checkpoints without any."""

from __future__ import annotations

from pathlib import Path

import pytest

from twisted_mq.spark.sink.stored_partitions import StoredPartitions, keep_stored, read_stored


def test_what_was_kept_is_of_that_batch_alone(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    assert read_stored(checkpoint) == read_stored(None) == StoredPartitions()
    assert keep_stored(checkpoint, 6, ["x"]) and keep_stored(checkpoint, 7, ["b", "a"])
    kept = read_stored(f"file:{checkpoint}")
    assert (kept.of_batch(7), kept.of_batch(6), kept.of_batch(8)) == ({"a", "b"}, set(), set())


@pytest.mark.parametrize("content", [b"", b"[]", b'{"batch": 1}', b"\xff"], ids=str)
def test_a_file_of_no_use_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rocketmq-sink.json").write_bytes(content)
    assert read_stored(str(tmp_path)) == StoredPartitions()


@pytest.mark.parametrize("place", ["nowhere://host/checkpoint", "/proc/checkpoint"])
def test_a_checkpoint_out_of_reach_keeps_nothing(place: str) -> None:
    assert read_stored(place) == StoredPartitions()
    assert not keep_stored(place, 1, ["a"])
