"""The mark of unfinished work on the queues, as the next start finds it on disk."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from twisted_mq.storage.files import directory
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.recovery.interruption_mark import Unfinished


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    """Return the paths of a store that was closed."""
    paths = StorePaths(str(tmp_path))
    known(paths).save()
    return paths


def known(paths: StorePaths) -> Checkpoint:
    return Checkpoint(paths.checkpoint, 3000, 2000, 1000, 40, 50)


def on_disk(paths: StorePaths) -> tuple[Checkpoint, bool]:
    return Checkpoint.load(paths.checkpoint), Path(paths.abort).exists()


@pytest.mark.parametrize("index", [False, True])
def test_while_it_is_begun_the_checkpoint_knows_no_queue(paths: StorePaths, index: bool) -> None:
    Unfinished(paths).begin(index=index)
    unsure = attrs.evolve(known(paths), logics_msg_timestamp=0, index_msg_timestamp=0 if index else 1000)
    assert on_disk(paths) == (unsure, True)


def test_its_end_writes_what_is_on_disk_now(paths: StorePaths) -> None:
    unfinished, now = Unfinished(paths), attrs.evolve(known(paths), logics_msg_timestamp=2500)
    unfinished.begin()
    unfinished.end(now)
    assert (on_disk(paths), unfinished.begun) == ((now, True), False)


def test_an_end_without_a_begin_writes_nothing(paths: StorePaths) -> None:
    Unfinished(paths).end(Checkpoint(paths.checkpoint))
    assert on_disk(paths) == (known(paths), False)


@pytest.mark.parametrize("was_closed", [True, False])
def test_taken_back_both_files_are_what_they_were(paths: StorePaths, was_closed: bool) -> None:
    if not was_closed:
        Path(paths.abort).touch()
    unfinished = Unfinished(paths)
    unfinished.begin()
    unfinished.begin()
    unfinished.take_back()
    assert (on_disk(paths), unfinished.begun) == ((known(paths), not was_closed), False)


def test_taken_back_the_abort_file_does_not_come_back_with_a_power_cut(
    paths: StorePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished = Unfinished(paths)
    unfinished.begin()
    synced: list[tuple[str, list[str]]] = []

    def fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append((path, os.listdir(path)))

    monkeypatch.setattr(directory, "fsync", fsync)
    unfinished.take_back()
    assert synced == [(paths.root, ["checkpoint"])]
