"""Lines of child processes in the supervisor's log."""

from __future__ import annotations

import datetime
import io

from twisted.logger import LogEvent, LogLevel, capturedLogs, formatEvent
from twisted.python.failure import Failure

from twisted_mq.broker.processes.child_log import MOST_LINE_BYTES, ChildLog
from twisted_mq.config.json_log import JsonLog

TIME = datetime.datetime(2026, 11, 22, 14, 2, 11, 512000, datetime.UTC).timestamp()


def line_of(**fields: object) -> bytes:
    """The line that a broker writes."""
    file = io.StringIO()
    JsonLog(file)({"log_time": TIME, "log_namespace": "twisted_mq.broker.service", **fields})
    return file.getvalue().encode()


def logged(*parts: bytes) -> list[LogEvent]:
    with capturedLogs() as events:
        log = ChildLog("b-1")
        for part in parts:
            log.receive(part)
        log.end()
    return list(events)


def test_a_line_keeps_its_time_level_and_logger_and_gets_the_brokers_name():
    line = line_of(log_level=LogLevel.error, log_format="disk {n} full", n=3)
    (event,) = logged(line[:10], line[10:])
    assert formatEvent(event) == "b-1: disk 3 full"
    assert (event["log_level"], event["log_namespace"], event["log_time"]) == (
        LogLevel.error, "twisted_mq.broker.service", TIME,
    )  # fmt: skip


def test_a_traceback_follows_its_line():
    try:
        raise ZeroDivisionError("x")
    except ZeroDivisionError:
        failure = Failure()
    (event,) = logged(line_of(log_level=LogLevel.critical, log_format="broken", log_failure=failure))
    first, *trace = formatEvent(event).split("\n")
    assert first == "b-1: broken"
    assert any("ZeroDivisionError" in line for line in trace)


def test_other_output_is_a_warning_of_one_line_that_forges_nothing():
    events = logged(b"Trace\x1b[31mback\n\nlast without end")
    assert [(event["log_level"], formatEvent(event)) for event in events] == [
        (LogLevel.warn, "b-1: Trace\\x1b[31mback"),
        (LogLevel.warn, "b-1: last without end"),
    ]


def test_damaged_json_is_shown_as_it_is():
    for line in (b'{"time":"x","level":"info"}', b'{"time":"2026-11-22T14:02:11.512Z","level":1}', b'{"time":'):
        (event,) = logged(line + b"\n")
        assert formatEvent(event) == f"b-1: {line.decode()}"


def test_a_line_without_end_is_bounded():
    first, second = logged(b"a" * (MOST_LINE_BYTES + 1), b"b\n")
    assert formatEvent(first).endswith(f"... ({MOST_LINE_BYTES + 1} characters)")
    assert formatEvent(second) == "b-1: b"
