"""Lines of the log as JSON: what they say, and what they never say."""

from __future__ import annotations

import io
import json
from typing import Any

from twisted.logger import LogLevel
from twisted.python.failure import Failure

from twisted_mq.config.daemon_log import writes_to_stdout
from twisted_mq.config.json_log import JsonLog, json_line


def event(log_format: str | None, **fields: Any) -> dict[str, Any]:
    return {
        "log_format": log_format, "log_level": LogLevel.warn, "log_namespace": "twisted_mq.a", "log_time": 1.5, **fields
    }  # fmt: skip


def test_a_line_has_the_text_and_the_fields_that_it_is_made_of() -> None:
    line = json.loads(
        json_line(event("topic created: topic={t} queues={q} by={who}", t="T\n", q=4, who=ValueError("x")))
    )
    assert line == {
        "time": "1970-01-01T00:00:01.500Z", "level": "warn", "logger": "twisted_mq.a",
        "text": "topic created: topic=T\n queues=4 by=x", "t": "T\n", "q": 4, "who": "x",
    }  # fmt: skip


def test_what_the_text_does_not_name_is_not_told() -> None:
    line = json_line(
        event("request refused: peer={peer}", peer="h:1", password="planted", options={"secret": "planted"})
    )
    assert "planted" not in line


def test_fields_do_not_take_the_place_of_the_lines_own() -> None:
    line = json.loads(json_line(event("{text} {level}", text="of mine", level=3)))
    assert (line["text"], line["field_text"], line["level"], line["field_level"]) == ("of mine 3", "of mine", "warn", 3)


def test_a_failure_has_its_traceback() -> None:
    try:
        raise KeyError("gone")
    except KeyError:
        line = json.loads(json_line(event("failed", log_failure=Failure())))
    assert (line["error"], "KeyError" in line["traceback"]) == ("'gone'", True)


def test_lines_of_others_have_no_fields() -> None:
    assert json.loads(json_line(event(None)))["text"] == ""
    assert json.loads(json_line(event("{broken")))["level"] == "warn"


def test_each_event_is_a_line() -> None:
    file = io.StringIO()
    log = JsonLog(file)
    for number in range(2):
        log(event("{n}", n=number))
    assert [json.loads(line)["n"] for line in file.getvalue().splitlines()] == [0, 1]


def test_the_log_goes_to_standard_output_in_the_foreground_without_a_file() -> None:
    options = [{"nodaemon": 1}, {"logfile": "-"}, {}, {"nodaemon": 1, "syslog": 1}, {"nodaemon": 1, "logfile": "x"}]
    assert [writes_to_stdout(one) for one in options] == [True, True, False, False, False]
