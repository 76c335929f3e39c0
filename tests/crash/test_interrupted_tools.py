"""`mq store repair` and `rebuild` killed at each of their writes: a broker starts on what is left, a second try mends all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.test_interrupted_recovery import (
    Outcome,
    fill,
    log_damaged_before_intact_records,
    no_sync,
    one_thread,
    queue_file_cut,
    queue_file_missing,
)
from tests.support.crash_rounds import thorough
from tests.support.interruption import Interruption, Killed
from tests.support.store_load import small_config
from twisted_mq.storage.check import check_store
from twisted_mq.storage.errors import WrongFileSize
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.tools.rebuild import rebuild
from twisted_mq.storage.tools.repair import repair
from twisted_mq.storage.tools.verify import verify

KILLS_A_CASE = 8
Change = Callable[[Path], None]

__all__ = ["one_thread"]


def foreign_bytes_in_the_log(root: Path) -> None:
    """Records behind them lie at another place than their own."""
    path = sorted((root / "commitlog").iterdir())[1]
    content = path.read_bytes()
    path.write_bytes(content[:1010] + b"foreign bytes" + content[1010:])


def try_to_repair(root: Path, name: str) -> None:
    repair(str(root), name=name, index_sizes=small_config(root, max_hash_slot_num=8, max_index_num=64).index_sizes)


def try_to_rebuild(root: Path, name: str) -> None:
    sizes = small_config(root, max_hash_slot_num=8, max_index_num=64).index_sizes
    rebuild(str(root), apply=True, name=name, index_sizes=sizes)


CASES = [
    (log_damaged_before_intact_records, try_to_repair),
    (foreign_bytes_in_the_log, try_to_repair),
    (queue_file_cut, try_to_repair),
    (queue_file_missing, try_to_rebuild),
]


@pytest.mark.parametrize(("damage", "mend"), CASES)
def test_interrupted_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Change, mend: Callable[[Path, str], None]
) -> None:
    template, root = tmp_path / "template", tmp_path / "store"
    monkeypatch.setattr(os, "fsync", no_sync)
    monkeypatch.setattr(system_calls, "fdatasync", no_sync)
    fill(template, clean=True)
    damage(template)
    shutil.copytree(template, root)
    counted = Interruption(-1)
    with counted.patched(no_sync):
        mend(root, "whole")
    owed = Outcome.of(root)
    assert owed.problems == [] and not (root / "abort").exists()
    for at in range(0, counted.writes, 1 if thorough() else max(1, counted.writes // KILLS_A_CASE)):
        shutil.rmtree(root)
        shutil.copytree(template, root)
        with Interruption(at).patched(no_sync), contextlib.suppress(Killed):
            mend(root, "killed")
        started = root.with_name("started")
        shutil.rmtree(started, ignore_errors=True)
        shutil.copytree(root, started)
        with contextlib.suppress(WrongFileSize):  # as before the repair
            assert Outcome.of(started).problems == [], at
        mend(root, "again")
        assert [str(one) for one in verify(str(root)).findings] == [], at
        assert check_store(str(root)) == [], at
        assert Outcome.of(root).served == owed.served, at
