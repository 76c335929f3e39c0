"""Puts the log lines of child processes into the supervisor's log, with their time, level and the broker's name."""

from __future__ import annotations

import datetime
import time
from typing import Any

import msgspec
from twisted.logger import LogEvent, LogLevel, globalLogPublisher

from twisted_mq.logs import IS_SHOWN, shown

MOST_LINE_BYTES = 64 * 1024
"""The limit of a line that is not ended; more of it begins another line."""

_LEVELS = {level.name: level for level in LogLevel.iterconstants()}


class ChildLog:
    """Receives the output of one broker: lines as logFormat=json has them, and any others."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._rest = b""
        self.last = ""
        """The last line, for the reason of an end."""

    def receive(self, data: bytes) -> None:
        """Take some bytes, and log each whole line."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._log(line)

    def end(self) -> None:
        """Log what is left without a line's end."""
        rest, self._rest = self._rest, b""
        self._log(rest)

    def _log(self, line: bytes) -> None:
        if line.strip():
            event = event_of_line(self._broker, line)
            self.last = event["line"].partition("\n")[0]
            globalLogPublisher(event)


def event_of_line(broker: str, line: bytes) -> LogEvent:
    """Return the event of a line. What is not JSON of a log is a warning: a traceback, or the reason of an end."""
    fields = _fields(line)
    event: LogEvent = {
        "log_format": "{broker}: {line}", "broker": broker, IS_SHOWN: True,
        "log_namespace": "twisted_mq.broker", "log_time": time.time(), "log_level": LogLevel.warn,
    }  # fmt: skip
    if fields is None:
        event["line"] = shown(line.decode("utf-8", "replace"))
        return event
    trace = fields.get("traceback")
    event["line"] = f"{fields['text']}\n{trace}" if trace else fields["text"]
    event["log_level"] = _LEVELS.get(fields["level"], LogLevel.warn)
    event["log_namespace"] = fields["logger"]
    event["log_time"] = datetime.datetime.fromisoformat(fields["time"]).timestamp()
    return event


def _fields(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b'{"time":'):
        return None
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
        datetime.datetime.fromisoformat(fields["time"])
    except (msgspec.DecodeError, ValueError, TypeError):
        return None
    return fields if all(isinstance(fields.get(name), str) for name in ("level", "logger", "text")) else None
