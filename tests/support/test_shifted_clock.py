"""A process whose clocks are shifted, stopped and run again while it lives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shifted_clock import ShiftedClock

TELL = """
import datetime, sys, threading, time
for line in sys.stdin:
    if line.strip() == "wait":
        time.sleep(0.01)
        threading.Lock().acquire() and threading.Event().wait(0.01)
    print(time.time_ns(), time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME),
          int(datetime.datetime.now().timestamp()), int(time.perf_counter()), flush=True)
"""

HOUR = 3600 * 10**9
SLACK = 600 * 10**9
"""Far more than a slow machine needs between two looks, far less than what is shifted."""


class Shown:
    """A process that tells its clocks: wall, monotonic, boot time in nanoseconds."""

    def __init__(self, clock: ShiftedClock) -> None:
        environment = {**os.environ, **clock.environment()}
        self.process = subprocess.Popen(
            [sys.executable, "-c", TELL], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def clocks(self, word: str = "") -> tuple[int, int, int]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(word, file=self.process.stdin, flush=True)
        wall, monotonic, boot, date, _ = map(int, self.process.stdout.readline().split())
        assert abs(date * 10**9 - wall) < SLACK
        return wall, monotonic, boot


@pytest.fixture
def clock(tmp_path: Path) -> ShiftedClock:
    return ShiftedClock(tmp_path / "clock")


@pytest.fixture
def shown(clock: ShiftedClock) -> Iterator[Shown]:
    one = Shown(clock)
    with one.process:
        yield one
        assert one.process.stdin is not None
        one.process.stdin.close()


def test_the_wall_clock_jumps_alone(clock: ShiftedClock, shown: Shown) -> None:
    before = shown.clocks()
    clock.shift_wall(7200)
    ahead = shown.clocks()
    clock.shift_wall(-10800)
    back = shown.clocks()
    assert abs(ahead[0] - before[0] - 2 * HOUR) < SLACK
    assert abs(back[0] - before[0] + HOUR) < SLACK
    assert all(before[row] < ahead[row] < back[row] < before[row] + SLACK for row in (1, 2))


def test_clocks_stand_still_and_go_on_from_there(clock: ShiftedClock, shown: Shown) -> None:
    clock.freeze()
    first, second = shown.clocks(), shown.clocks("wait")
    assert first[1:] == second[1:]
    assert first[0] < second[0]
    clock.thaw()
    third = shown.clocks("wait")
    assert all(first[row] < third[row] < first[row] + SLACK for row in (1, 2))


def test_each_clock_stops_by_itself(clock: ShiftedClock, shown: Shown) -> None:
    clock.freeze(monotonic=False, boottime=False, realtime=True)
    first = shown.clocks()
    clock.shift_wall(3600)
    second = shown.clocks("wait")
    assert second[0] == first[0] + HOUR
    assert second[1] > first[1]
    assert second[2] > first[2]


def test_a_wait_lasts_after_a_stop(clock: ShiftedClock, shown: Shown) -> None:
    """The process's clock is behind the kernel's: a deadline that the kernel took as it is would be over at once."""
    clock.freeze()
    first = shown.clocks("wait")
    clock.thaw()
    before, after = shown.clocks(), shown.clocks("wait")
    assert before[1] >= first[1]
    assert after[1] - before[1] >= 20 * 10**6
