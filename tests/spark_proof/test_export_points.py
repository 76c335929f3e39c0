"""The proof of exports under kill -9 of their driver: where it kills, and what it calls wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.spark_proof import export_driver
from tests.spark_proof.export_driver import Java, Job, Planted
from tests.spark_proof.export_points import Exports


class System:
    """A file system that knows what was done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def move(self, source: str, target: str) -> None:
        self.done.append(f"{source} to {target}")

    def get_file_info(self, path: str) -> str:
        return path


@pytest.mark.parametrize(("is_before", "done"), [(True, ["a to b"]), (False, ["a to b", "b to c"])])
def test_a_driver_ends_itself_at_a_change(is_before: bool, done: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def die() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(export_driver, "die", die)
    system = System()
    planted = Planted(system, Job("parquet", "", (), change=2, is_before=is_before), iter(range(1, 9)))
    planted.move("a", "b")  # type: ignore[operator]
    assert planted.get_file_info("b") == "b"  # type: ignore[operator]
    with pytest.raises(KeyboardInterrupt):
        planted.move("b", "c")  # type: ignore[operator]
    assert system.done == done


def exports(directory: Path, kind: str, monkeypatch: pytest.MonkeyPatch, offsets: list[int]) -> Exports:
    """A table with rows of the first store, which has ten messages."""
    made = Exports(kind, directory, Java(0, ""), random.Random(1))
    store = made._stores[0]
    for _ in range(10):
        store.append()
    rows = [(str(store.root), store.positions[number] if number < 10 else 1) for number in offsets]
    monkeypatch.setattr(Exports, "_places", lambda self: rows)
    return made


@pytest.mark.parametrize(
    ("kind", "offsets", "problem"),
    [
        ("delta", [0, 1, 2], ""),
        ("parquet", [0, 2], ""),
        ("delta", [0, 2], "delta: 1 behind a gap"),
        ("parquet", [0, 1, 1], "parquet: 1 in the table twice"),
        ("iceberg", [0, 10], "iceberg: 1 never written"),
    ],
)
def test_what_is_wrong_after_a_kill(
    kind: str, offsets: list[int], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = exports(tmp_path, kind, monkeypatch, offsets)
    made._check_rows()
    assert [one.partition(":")[0] + ":" + one.split(":")[1] for one in made.problems] == ([problem] if problem else [])


def test_what_is_missing_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = exports(tmp_path, "delta", monkeypatch, list(range(9)))
    monkeypatch.setattr(Exports, "_driven", lambda self, job, stage="": 0)
    made.run(0)
    assert [one.partition(": [")[0] for one in made.problems] == ["delta: 1 missing"]
    assert (made.checks, made.kills.total()) == (1, 0)
