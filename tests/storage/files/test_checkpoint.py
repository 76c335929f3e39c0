"""The checkpoint file."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tests.storage.apache_stores import expected, unpack
from twisted_mq.protocol.layouts.checkpoint import CHECKPOINT, TIMER_CHECKPOINT
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint


@pytest.mark.parametrize("name", ["st", "livecopy", "cut_tail"])
def test_apaches_checkpoint_is_read(tmp_path: Path, name: str) -> None:
    path = unpack(name, tmp_path) / "checkpoint"
    checkpoint = Checkpoint.load(str(path))
    (line,) = expected(name, "store")
    assert checkpoint.physic_msg_timestamp <= line["checkpoint_physicMsgTimestamp"]
    before = path.read_bytes()
    checkpoint.save()
    assert path.read_bytes() == before


def test_values_come_back_and_the_file_has_a_page(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    synced: list[int] = []
    Checkpoint(str(path), 1, 2, 3, 4, 5).save(synced.append)
    assert Checkpoint.load(str(path)) == Checkpoint(str(path), 1, 2, 3, 4, 5)
    assert (path.stat().st_size, len(synced)) == (4096, 1)
    assert path.read_bytes()[:40] == b"".join(value.to_bytes(8, "big") for value in (1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    "content", [None, b"", bytes(39), b"\xff" * 4096], ids=["missing", "empty", "short", "negative"]
)
def test_unreadable_checkpoint_knows_nothing(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "checkpoint"
    if content is not None:
        path.write_bytes(content)
    assert Checkpoint.load(str(path)) == Checkpoint(str(path))


@pytest.mark.parametrize(("physic", "logics", "safe"), [(9000, 8000, 5000), (8000, 9000, 5000), (2000, 9000, 0)])
def test_safe_time_is_three_seconds_before_the_older(physic: int, logics: int, safe: int) -> None:
    assert Checkpoint("", physic, logics).min_timestamp == safe


def test_the_fields_of_both_checkpoints_are_their_layouts() -> None:
    names = [field.name for field in attrs.fields(Checkpoint)]
    assert names == ["path", *(subcon.name for subcon in CHECKPOINT.subcons)]
    assert [field.name for field in attrs.fields(TimerCheckpoint)] == [one.name for one in TIMER_CHECKPOINT.subcons]
