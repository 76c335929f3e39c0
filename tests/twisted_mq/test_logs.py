"""One log for all: what becomes of a line of ours."""

from __future__ import annotations

import logging

import pytest
from twisted.logger import LogLevel, capturedLogs, formatEvent

from twisted_mq.logs import Logger

HERE = __name__
log = Logger()


class Service:
    log = Logger()

    def tell(self) -> None:
        self.log.warn("queue {queue} is full", queue=3)


def failing() -> None:
    raise KeyError("gone")


def log_failure() -> None:
    try:
        failing()
    except KeyError:
        log.failure("turn failed: group={group}", group="g")


def test_lines_are_records_named_by_module_with_their_place(caplog):
    with caplog.at_level(logging.DEBUG):
        Service().tell()
        log.debug("percent % and {braces}", braces="{x}")
    first, second = caplog.records
    assert (first.name, first.levelname, first.getMessage()) == (HERE, "WARNING", "queue 3 is full")
    assert (first.filename, first.funcName, first.event["queue"]) == ("test_logs.py", "tell", 3)
    assert (second.levelname, second.getMessage()) == ("DEBUG", "percent % and {x}")


@pytest.mark.parametrize("name", ["debug", "info", "warn", "error", "critical"])
def test_each_level_has_its_like(caplog, name):
    caplog.set_level(logging.DEBUG)
    getattr(log, name)("x")
    assert caplog.records[0].levelno == getattr(logging, name.upper())


def test_failure_keeps_its_traceback(caplog):
    log_failure()
    (record,) = caplog.records
    assert (record.levelname, record.getMessage(), record.funcName) == (
        "CRITICAL",
        "turn failed: group=g",
        "log_failure",
    )
    assert "in failing\n" in caplog.text and "KeyError: 'gone'" in caplog.text


def test_nothing_is_made_of_lines_below_the_level(caplog):
    class Untouchable:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    with caplog.at_level(logging.WARNING, HERE):
        log.info("{it}", it=Untouchable())
    assert caplog.records == []


def test_twisted_gets_our_events_and_the_records_of_others():
    with capturedLogs() as events:
        log.warn("a={a}", a=1)
        logging.getLogger("other.library").error("b=%d", 2)
        logging.getLogger("other.library").log(3, "too low")
        try:
            failing()
        except KeyError:
            logging.getLogger(HERE).exception("c")
    assert [(one["log_namespace"], one["log_level"], formatEvent(one)) for one in events] == [
        (HERE, LogLevel.warn, "a=1"),
        ("other.library", LogLevel.error, "b=2"),
        (HERE, LogLevel.error, "c"),
    ]
    assert events[0]["a"] == 1
    assert events[2]["log_failure"].check(KeyError)
