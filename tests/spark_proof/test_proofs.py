"""The proofs themselves: what they call a broken promise, how they find whom to kill: the processes below a driver."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import attrs
import pytest

from interop.peers.process import PeerFailed, Process, wait_until
from tests.spark_proof import kills, latency, sink
from tests.spark_proof.processes import PLANNER, TASKS, Driver, below, end

PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"


def outcome(**changes: object) -> kills.Outcome:
    """Three messages, of which one was stored without an answer; all are rows."""
    seen = {(0, 0): "a", (0, 1): "b", (1, 0): "c"}
    values = {"acknowledged": {(0, 0): "a", (1, 0): "c"}, "unknown": {"b"}, "queued": seen, "rows": list(seen.items())}
    return kills.Outcome(**(values | changes))  # type: ignore[arg-type]


def test_a_sound_run_breaks_no_promise() -> None:
    assert outcome().broken_promises() == []
    assert outcome().summary().endswith("3 rows in 0 batches, 0 queries started again; none lost, none twice")


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        (
            {"rows": [((0, 0), "a"), ((0, 1), "b")]},
            [
                "1 acknowledged and not in the rows: [((1, 0), 'c')]",
                "1 in the queues and not in the rows: [((1, 0), 'c')]",
            ],
        ),
        ({"rows": [*outcome().rows, ((0, 1), "b")]}, ["1 in the rows twice: [(0, 1)]"]),
        ({"rows": [*outcome().rows, ((1, 1), "b")]}, ["1 in the rows and not in the queues: [((1, 1), 'b')]"]),
        ({"unknown": set()}, ["1 in the queues and never sent: ['b']"]),
    ],
)
def test_each_broken_promise_is_named(changes: dict[str, object], problems: list[str]) -> None:
    assert outcome(**changes).broken_promises() == problems


def test_a_sink_may_repeat_rows_under_their_id_alone() -> None:
    assert sink.Outcome(2, [("0", "q-0"), ("1", "q-1"), ("1", "q-1")]).broken_promises() == []
    assert sink.Outcome(2, [("0", "q-0"), ("0", "q-9")]).broken_promises() == [
        "1 rows lost: ['1']",
        "1 rows twice under another id",
    ]


@attrs.define
class Rounds(Driver):
    """A driver that runs for this many checks, and always has a worker."""

    left: int = 6

    @property
    def is_running(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def kill_worker(self, *, planners: bool = False) -> bool:
        return True


@pytest.mark.parametrize(("counts", "killed"), [((0, 0, 0, 0, 0, 0), 0), ((0, 0, 5, 5, 5, 9, 9, 9), 2)])
def test_tasks_are_killed_after_some_of_their_rows_came_in(
    counts: tuple[int, ...], killed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "PAUSES_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(Driver, "start", lambda driver: None)
    driver = Rounds("sink", {}, tmp_path / "log", random.Random(1))
    driver._process = Process.start([sys.executable, "-c", ""], tmp_path / "log", tmp_path)
    assert driver.process.child.wait(60) == 0
    stored = iter([*counts, *counts[-1:] * 9])
    assert sink._written_under_kills(driver, 3, lambda: next(stored)) == killed


def test_times_are_of_the_messages_behind_the_first_batch() -> None:
    sent = {(0, number): 1000.0 + number for number in range(4)} | {(1, 0): 900.0}
    batches = [
        ({"T": {"a": {"0": 1}}}, 1100.0),
        ({"T": {"a": {"0": 3, "1": 1}}}, 1500.0),
        ({"T": {"a": {"0": 4}}}, 2003.0),
    ]
    assert latency.times_ms(sent, batches) == [499.0, 498.0, 600.0, 1000.0]


def test_processes_below_one_are_found_and_ended(tmp_path: Path) -> None:
    process = Process.start([sys.executable, "-c", PARENT], tmp_path / "log", tmp_path)
    wait_until(lambda: below(process.child.pid), "the child has a child")
    (grandchild,) = below(process.child.pid)
    assert (grandchild.parent, "time.sleep(60)" in grandchild.command) == (process.child.pid, True)
    end(grandchild.pid)
    assert process.child.wait(60) == 0
    end(grandchild.pid)


def test_a_driver_that_ends_by_itself_is_told_with_its_words(tmp_path: Path) -> None:
    driver = Driver("stream", {}, tmp_path / "log", random.Random(1))
    driver._process = Process.start([sys.executable, "-c", "print('no topic'); exit(3)"], tmp_path / "log", tmp_path)
    driver.process.child.wait(60)
    with pytest.raises(PeerFailed, match="the driver ended with 3:\nno topic"):
        driver.check()


def test_workers_are_forks_of_the_daemon_of_tasks_and_planners_where_they_are_wanted(tmp_path: Path) -> None:
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    parts = [[sys.executable, "-c", PARENT, *TASKS.split()], [*sleeping, *PLANNER.split()], sleeping]
    program = f"import subprocess; [one.wait() for one in [subprocess.Popen(part) for part in {parts}]]"
    driver = Driver("stream", {}, tmp_path / "log", random.Random(1))
    driver._process = Process.start([sys.executable, "-c", program], tmp_path / "log", tmp_path)
    try:
        wait_until(lambda: len(below(driver.process.child.pid)) == 4, "all have started")
        (worker,) = driver.workers()
        assert driver.kill_worker()
        wait_until(lambda: worker not in {entry.pid for entry in below(driver.process.child.pid)}, "it has ended")
        (planner,) = driver.workers(planners=True)
        assert [one.command.endswith(PLANNER) for one in below(driver.process.child.pid) if one.pid == planner] == [
            True
        ]
    finally:
        driver.kill()
    assert not driver.is_running
