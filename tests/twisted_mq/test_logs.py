"""Log lines of this project in each log."""

from __future__ import annotations

import io
import json
import logging

import pytest
import twisted.logger
from twisted.logger import LogLevel, capturedLogs, formatEvent
from twisted.python.failure import Failure

from twisted_mq import logs
from twisted_mq.config import daemon_log
from twisted_mq.config.json_log import json_line
from twisted_mq.log_repeats import MINUTE_SECONDS, LogRepeats
from twisted_mq.logs import MOST_CHARACTERS, Logger, complain_seldom, tell_left_out

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


FORGED = "me\n2026-11-22 broker stopped\r\x1b[31m\u2028\ud800\u202e"
SAFE = "me\\n2026-11-22 broker stopped\\r\\x1b[31m\\u2028\\ud800\\u202e"


@pytest.mark.parametrize("wrap", [str, ValueError, lambda text: text.encode("utf-8", "replace"), lambda text: [text]])
def test_fields_fill_no_line_but_their_own(caplog, wrap):
    log.warn("user={user}", user=wrap(FORGED))
    log.warn("user={user!r}", user=wrap(FORGED))
    for record in caplog.records:
        assert record.getMessage().isprintable()
        assert json.loads(json_line(record.event))["text"] == record.getMessage()


def test_what_is_not_printable_is_escaped_and_other_letters_stay(caplog):
    log.warn("user={user} topic={topic}", user=FORGED, topic="\u00e9\u4e2d\U0001f600 x")
    assert caplog.records[0].getMessage() == f"user={SAFE} topic=\u00e9\u4e2d\U0001f600 x"


def test_long_fields_are_shortened_and_say_so(caplog):
    log.warn("user={user} error={error}", user="x" * 7_000_000, error=ValueError("y" * 7_000_000))
    text = caplog.records[0].getMessage()
    assert len(text) < 2 * MOST_CHARACTERS + 100
    assert text.count("... (7000000 characters)") == 2
    assert len(json_line(caplog.records[0].event)) < 10_000


def test_a_failure_with_a_forged_text_is_told_by_a_stand_in(caplog):
    try:
        raise KeyError(FORGED + "x" * 100_000)
    except KeyError:
        log.failure("turn failed")
    assert len(caplog.text) < 10_000
    assert "KeyError" in caplog.text
    assert "\n2026-11-22" not in caplog.text
    assert "in test_a_failure_with_a_forged_text" in caplog.text


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(logs, "repeats", LogRepeats(now=clock))
    complain_seldom()
    return clock


def test_repeated_complaints_are_counted(caplog, clock):
    for number in range(87_000):
        log.error("message {at} cannot be read", at=number)
    assert len(caplog.records) == 5
    clock.now += MINUTE_SECONDS
    tell_left_out()
    tell_left_out()
    assert [record.getMessage() for record in caplog.records[5:]] == [
        "86995 more lines in a minute like this: message 86999 cannot be read"
    ]
    assert caplog.records[-1].levelno == logging.ERROR
    log.error("message {at} cannot be read", at=1)
    assert len(caplog.records) == 7


def test_any_line_brings_the_count_of_those_left_out_before(caplog, clock):
    caplog.set_level(logging.INFO)
    for _ in range(7):
        log.warn("again")
    clock.now += MINUTE_SECONDS + 1
    log.info("other")
    assert [record.getMessage() for record in caplog.records[5:]] == [
        "2 more lines in a minute like this: again",
        "other",
    ]


def test_causes_and_levels_are_counted_apart(caplog, clock):
    caplog.set_level(logging.INFO)
    for number in range(50):
        log.warn("one {n}", n=number)
        log.info("one {n}", n=number)
    assert len(caplog.records) == 55


def test_what_was_left_out_is_told_at_the_end(caplog, clock):
    for _ in range(6):
        log.warn("again")
    tell_left_out(at_end=True)
    assert caplog.records[-1].getMessage() == "1 more lines in a minute like this: again"


def test_text_of_twisted_and_of_other_libraries_fills_no_line_but_its_own(caplog):
    file = io.StringIO()
    keep = daemon_log.observer(file)
    forged = "peer \n2026-11-25T00:00:00+0000 [broker#critical] gone\r"
    other = logging.LogRecord("library", logging.WARNING, __file__, 1, forged, (), None)
    error = OSError(forged + "x" * 5000)
    with capturedLogs() as events:
        twisted.logger.Logger("twisted.web").warn("from {peer}", peer=forged)
        twisted.logger.Logger("twisted.web").failure("lost", Failure(error))
        log.warn("ours {peer}", peer=forged)
    for event in (*events, logs.event_of(other)):
        keep(event)
    lines = file.getvalue().splitlines()
    assert [line for line in lines if line.startswith("2026-11-25T00:00:00")] == []
    assert sum("gone" in line for line in lines) == 4
    assert max(map(len, lines)) < 2 * MOST_CHARACTERS
    as_json = [json_line(logs.shown_event(event)) for event in events]
    assert [line.count("\n") for line in as_json] == [1, 1, 1]
    assert json.loads(as_json[1])["error"].endswith("characters)")
    logs.to_standard(events[0])
    assert "\n" not in caplog.records[-1].getMessage()
