"""Writers killed at any point: what was acknowledged is there, once, and the store is sound."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.crash_rounds import kill_rounds
from tests.support.store_load import START_MS, Acknowledged, broken_promises, small_config
from twisted_mq.storage.message_store import FileMessageStore

ROUNDS_A_STORE = 10
SERIALS_A_ROUND = 1_000_000
SLOWEST_SECONDS = 0.03
MOST_LINES = 8000
KILLED = -9


@pytest.fixture(scope="module")
def writer() -> Iterator[subprocess.Popen[str]]:
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.writer"],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.communicate()


def kill_one(writer: subprocess.Popen[str], job: dict[str, Any]) -> int:
    assert writer.stdin is not None and writer.stdout is not None
    writer.stdin.write(json.dumps(job) + "\n")
    writer.stdin.flush()
    return int(writer.stdout.readline())


def read_notes(path: Path) -> list[Acknowledged]:
    return [Acknowledged(*json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def reopened_problems(root: Path, told: list[Acknowledged]) -> list[str]:
    store = FileMessageStore(small_config(root), lambda: START_MS, sync=lambda _descriptor: None)
    store.start()
    try:
        return broken_promises(store, told)
    finally:
        store.close()


def job_for(source: random.Random, root: Path, notes: Path, generation: int) -> dict[str, Any]:
    """Half of the writers die between two lines of storage/, half at a moment of the clock."""
    by_lines = source.random() < 0.5
    return {
        "root": str(root),
        "notes": str(notes),
        "serial": generation * SERIALS_A_ROUND,
        "seed": source.randrange(1 << 30),
        "recovering": source.random() < 0.3,
        "lines": int(MOST_LINES ** source.uniform(0.3, 1)) if by_lines else 0,
        "seconds": source.uniform(0, SLOWEST_SECONDS),
        "acknowledged": False,
    }


@pytest.mark.parametrize("seed", range(max(1, kill_rounds() // ROUNDS_A_STORE)))
def test_killed_writers(writer: subprocess.Popen[str], tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    root, notes = tmp_path / "store", tmp_path / "notes"
    for generation in range(ROUNDS_A_STORE):
        job = job_for(source, root, notes, generation)
        if generation == ROUNDS_A_STORE - 1 and not read_notes(notes):  # a busy machine
            job |= {"acknowledged": True, "lines": 0}
        assert kill_one(writer, job) == KILLED, job
        looked_at = root
        if source.random() < 0.7:  # the next writer then begins with the files as the last one left them
            looked_at = tmp_path / f"copy{generation}"
            shutil.copytree(root, looked_at) if root.exists() else None
        assert reopened_problems(looked_at, read_notes(notes)) == [], job
    assert read_notes(notes)
