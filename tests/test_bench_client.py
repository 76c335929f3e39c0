"""Results of the comparison of clients from its measurements, and its talk with the clients' processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.bench.bench_client import Client, SideFailed, parse, table
from tests.bench.client_sides import Measure, Task

TALKATIVE = "import sys\nfor line in sys.stdin: print('a library\\'s log'); print('{{{answer}}}', flush=True)"


def started(program: str) -> Client:
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return Client("side", child)


def test_ratios_are_to_java_and_to_the_wheel_and_dashes_where_nothing_was_measured() -> None:
    figures = {
        ("many", "java"): {"rate": 10_000.0, "cpu_us": 40.0},
        ("many", "aio"): {"rate": 6_000.0, "cpu_us": 30.0},
        ("iterate", "aio"): {"rate": 20_000.0, "cpu_us": 25.0},
    }
    unknown = {"rate": float("nan"), "cpu_us": float("nan")}
    lines = [
        line.split()
        for line in table(lambda load, name, what: figures.get((load, name), unknown)[what], ["many", "iterate"])
    ]
    assert lines[1:] == [
        ["many", "java", "10,000", "1.00", "-", "40.00", "1.00"],
        ["many", "aio", "6,000", "0.60", "-", "30.00", "0.75"],
        ["iterate", "aio", "20,000", "-", "-", "25.00", "-"],
    ]


def test_the_clock_starts_with_the_first_messages_which_do_not_count() -> None:
    measure = Measure()
    measure.took(32)
    assert (measure.count, measure.began > 0) == (0, True)
    measure.took(32)
    measure.took(1)
    assert measure.count == 33
    assert set(measure.result()) == {"rate", "cpu_us"}


def test_a_task_is_a_line() -> None:
    assert Task.of("listen Backlog g-1 1.5 6400\n") == Task("listen", "Backlog", "g-1", 1.5, 6400)


def test_what_a_library_prints_is_no_answer() -> None:
    client = started(TALKATIVE.format(answer='"rate":1.5,"cpu_us":2.5'))
    try:
        for _ in range(2):
            assert client.ask("one", 60) == {"rate": 1.5, "cpu_us": 2.5}
    finally:
        client.stop()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (TALKATIVE.format(answer='"error":"no route"'), "no route"),
        ("import sys; sys.stdin.readline(); sys.exit(3)", "ended with 3"),
        ("import sys; sys.stdin.readline(); sys.stdin.read()", "no answer in time"),
    ],
)
def test_a_client_that_fails_ends_or_is_silent_is_told(program: str, reason: str) -> None:
    client = started(program)
    try:
        with pytest.raises(SideFailed, match=reason):
            client.ask("one", 0.2 if "time" in reason else 60)
    finally:
        client.stop()


def test_all_sides_and_loads_are_measured_unless_said_otherwise() -> None:
    assert parse([]).sides == [
        "java",
        "cpp",
        "deferred",
        "aio",
        "uvloop",
        "blocking",
        "blocking-1",
        "futures",
        "futures-1",
    ]
    assert parse(["--only", "many,listen"]).only == ["many", "listen"]
