"""Writes lines of the log as JSON, one object per line, for programs that collect logs (logFormat=json).

    {"time":"2026-11-22T14:02:11.512Z","level":"info","logger":"twisted_mq.broker.service","text":"broker b stopped","name":"b"}

A line has the text and the fields that the text is made of, and no other values of the event.
"""

from __future__ import annotations

import datetime
import string
from typing import IO, Any

import msgspec
from twisted.logger import ILogObserver, LogEvent, formatEvent
from twisted.python.failure import Failure
from zope.interface import implementer

_encode = msgspec.json.Encoder(enc_hook=str).encode
_OWN = frozenset({"time", "level", "logger", "text", "error", "traceback"})
_PLAIN = (str, int, float, bool, type(None))


@implementer(ILogObserver)
class JsonLog:
    """Writes log lines to a text file."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __call__(self, event: LogEvent) -> None:
        self._file.write(json_line(event))
        self._file.flush()


def json_line(event: LogEvent) -> str:
    """Return the line of an event. A field with the name of one of the line's own members gets the prefix `field_`."""
    time = datetime.datetime.fromtimestamp(event.get("log_time", 0.0), datetime.UTC)
    level = event.get("log_level")
    line: dict[str, Any] = {
        "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": "info" if level is None else level.name,
        "logger": event.get("log_namespace", ""),
        "text": formatEvent(event),
    }
    for name in _fields_of(event.get("log_format")):
        if name in event:
            value = event[name]
            line[f"field_{name}" if name in _OWN else name] = value if isinstance(value, _PLAIN) else str(value)
    failure = event.get("log_failure")
    if isinstance(failure, Failure):
        line |= {"error": failure.getErrorMessage(), "traceback": failure.getTraceback()}
    return _encode(line).decode() + "\n"


def _fields_of(log_format: object) -> list[str]:
    """Return the names of the fields in a line's format."""
    if not isinstance(log_format, str):
        return []
    try:
        return [name for _, name, _, _ in string.Formatter().parse(log_format) if name and name.isidentifier()]
    except ValueError:
        return []
