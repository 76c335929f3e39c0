"""Logs to the standard library's loggers, named by module. Lines written by Twisted's calls go there too.

Peers' texts are made safe here, in one place: a field fills no other line and is short, and repeated lines are counted.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import time

import attrs
import twisted.logger
from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent, globalLogPublisher
from twisted.python.failure import Failure
from zope.interface import implementer, provider

from twisted_mq.log_repeats import MOST_COMPLAINTS, MOST_LINES, LogRepeats

PACKAGE = "twisted_mq"

LEVELS = {
    LogLevel.debug: logging.DEBUG,
    LogLevel.info: logging.INFO,
    LogLevel.warn: logging.WARNING,
    LogLevel.error: logging.ERROR,
    LogLevel.critical: logging.CRITICAL,
}
_TWISTEDS = {number: level for level, number in LEVELS.items()}


MOST_CHARACTERS = 1000
"""The limit of one field of a line in characters. Names come from peers, and can be megabytes long."""

_PLAIN = (int, float, type(None))

IS_SHOWN = "mq_is_shown"
"""The key of events whose fields are safe already."""

repeats = LogRepeats()
"""The count of repeated lines of this process."""


def shown(text: str) -> str:
    """Return a text that stays within its line: unprintable characters are escaped, long texts are shortened."""
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:MOST_CHARACTERS]}... ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode("ascii") for one in text
    )


class Shown:
    """A field that is not text, as lines show it."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return shown(str(self._value))

    def __repr__(self) -> str:
        return shown(repr(self._value))


def _field(value: object) -> object:
    if isinstance(value, Failure):
        value = f"{type(value.value).__name__}: {value.getErrorMessage()}"
    if isinstance(value, str):
        return shown(value)
    return value if isinstance(value, _PLAIN) else Shown(value)


def _shown_failure(failure: Failure) -> Failure:
    """Return the failure or, if its text fills more than a line, a replacement of the same name with a safe text."""
    error = failure.value
    text = str(error)
    if shown(text) == text:
        return failure
    kind = type(type(error).__name__, (Exception,), {"__module__": type(error).__module__})
    return Failure(kind(shown(text)), kind, failure.getTracebackObject())


class Logger(twisted.logger.Logger):
    """Twisted's logger, whose lines go to the standard library's logger of the module that created it.

    The record has the text and the traceback; its attribute `event` has the fields. `failure` is critical by default.
    Fields are escaped and shortened; repeated lines are counted.
    """

    def __get__(self, instance: object, owner: type | None = None) -> Logger:
        return self

    def emit(self, level: LogLevel, format: str | None = None, **fields: object) -> None:
        logger = logging.getLogger(self.namespace)
        number = LEVELS[level]
        if not logger.isEnabledFor(number):
            return
        failure = fields.pop("log_failure", None)
        event: LogEvent = {
            **{name: _field(value) for name, value in fields.items()},
            "log_level": level, "log_namespace": self.namespace, "log_format": format, "log_time": time.time(), IS_SHOWN: True,
        }  # fmt: skip
        trace = None
        if isinstance(failure, Failure) and failure.value is not None:
            event["log_failure"] = seen = _shown_failure(failure)
            assert seen.value is not None
            trace = (type(seen.value), seen.value, seen.getTracebackObject())
        tell_left_out()
        if not repeats.takes((self.namespace, number, str(format)), lambda: formatEvent(event)):
            return
        # the line's place in the source is two calls up: emit <- info <- caller
        logger.log(number, "%s", formatEvent(event), exc_info=trace, extra={"event": event}, stacklevel=3)


def tell_left_out(*, at_end: bool = False) -> None:
    """Write how many lines were left out in the last minute, a line for each cause."""
    for left_out in repeats.over(at_end=at_end):
        namespace, number, _ = left_out.cause
        event: LogEvent = {
            "log_level": _TWISTEDS[number], "log_namespace": namespace, "log_time": time.time(),
            "log_format": "{more} more lines in a minute like this: {last}", "more": left_out.lines, "last": left_out.last,
            IS_SHOWN: True,
        }  # fmt: skip
        logging.getLogger(namespace).log(number, "%s", formatEvent(event), extra={"event": event})


def complain_seldom() -> None:
    """Write only a few of the warnings and errors that repeat, for servers and commands."""
    repeats.most = lambda level: MOST_COMPLAINTS if level >= logging.WARNING else MOST_LINES


atexit.register(tell_left_out, at_end=True)


def shown_event(event: LogEvent) -> LogEvent:
    """Return a safe event: Twisted's own, or another library's, with its text and failure escaped.

    Events of ours are returned as they are.
    """
    if IS_SHOWN in event:
        return event
    kept = {name: event[name] for name in _KEPT if name in event}
    failure = event.get("log_failure")
    if isinstance(failure, Failure) and failure.value is not None:
        kept["log_failure"] = _shown_failure(failure)
    return {**kept, "log_format": "{log_text}", "log_text": shown(formatEvent(event))}


_KEPT = ("log_level", "log_namespace", "log_time", "log_system", "isError")


@attrs.frozen
@implementer(ILogObserver)
class Safely:
    """Passes events to an observer whose lines are kept: a peer's text in them cannot forge another line."""

    observer: ILogObserver

    def __call__(self, event: LogEvent) -> None:
        self.observer(shown_event(event))


class TwistedHandler(logging.Handler):
    """Passes records to Twisted's log, with their own name and level."""

    def emit(self, record: logging.LogRecord) -> None:
        globalLogPublisher(getattr(record, "event", None) or event_of(record))


def event_of(record: logging.LogRecord) -> LogEvent:
    """Return the event of a line that was written by the standard library's calls."""
    event: LogEvent = {
        "log_level": max(
            (level for level, number in LEVELS.items() if number <= record.levelno), default=LogLevel.debug
        ),
        "log_namespace": record.name,
        "log_format": "{log_text}",
        "log_text": record.getMessage(),
        "log_time": record.created,
    }
    if record.exc_info and record.exc_info[1] is not None:
        kind, error, trace = record.exc_info
        event["log_failure"] = Failure(error, kind, trace)
    return event


_to_twisted = TwistedHandler()


@provider(ILogObserver)
def to_standard(event: LogEvent) -> None:
    """Convert Twisted's own events (above all, unhandled errors) to records: an observer of Twisted's log."""
    event = shown_event(event)
    failure = event.get("log_failure")
    trace = (failure.type, failure.value, failure.getTracebackObject()) if failure is not None else None
    logger = logging.getLogger(event.get("log_namespace", "twisted"))
    logger.log(LEVELS.get(event.get("log_level"), logging.INFO), "%s", formatEvent(event), exc_info=trace)


def log_to_standard() -> None:
    """Send every line of Twisted's own to the standard library's log, like ours, unless those go to Twisted's.

    The faces for asyncio and for plain calls do that. Calling it twice is harmless.
    """
    if _to_twisted not in logging.getLogger().handlers:
        globalLogPublisher.addObserver(to_standard)


def log_to_twisted() -> None:
    """Send every line of this process to Twisted's log: ours whatever their level, others' from info on.

    The daemons and `mq` call it; a program that runs under twistd can too. Calling it twice is harmless.
    """
    with contextlib.suppress(ValueError):
        globalLogPublisher.removeObserver(to_standard)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(_to_twisted)
    logging.getLogger(PACKAGE).setLevel(logging.DEBUG)
