"""One log: the standard library's, named by module. Lines written by Twisted's calls go there too."""

from __future__ import annotations

import contextlib
import logging
import time

import twisted.logger
from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent, globalLogPublisher
from twisted.python.failure import Failure
from zope.interface import provider

PACKAGE = "twisted_mq"

LEVELS = {
    LogLevel.debug: logging.DEBUG,
    LogLevel.info: logging.INFO,
    LogLevel.warn: logging.WARNING,
    LogLevel.error: logging.ERROR,
    LogLevel.critical: logging.CRITICAL,
}


class Logger(twisted.logger.Logger):
    """Twisted's logger, whose lines go to the standard library's logger of the module that made it.

    Text and traceback are the record's; its attribute `event` has the fields. `failure` is critical unless told otherwise.
    """

    def __get__(self, instance: object, owner: type | None = None) -> Logger:
        return self

    def emit(self, level: LogLevel, format: str | None = None, **fields: object) -> None:
        logger = logging.getLogger(self.namespace)
        number = LEVELS[level]
        if not logger.isEnabledFor(number):
            return
        event: LogEvent = {
            **fields, "log_level": level, "log_namespace": self.namespace, "log_format": format, "log_time": time.time()
        }  # fmt: skip
        failure = fields.get("log_failure")
        trace = None
        if isinstance(failure, Failure) and failure.value is not None:
            trace = (type(failure.value), failure.value, failure.getTracebackObject())
        # the line's place in the source is two calls up: emit <- info <- caller
        logger.log(number, "%s", formatEvent(event), exc_info=trace, extra={"event": event}, stacklevel=3)


class TwistedHandler(logging.Handler):
    """Hands records to Twisted's log, with their own name and level."""

    def emit(self, record: logging.LogRecord) -> None:
        globalLogPublisher(getattr(record, "event", None) or event_of(record))


def event_of(record: logging.LogRecord) -> LogEvent:
    """The event of a line that was written by the standard library's calls."""
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
    """An observer of Twisted's log: what Twisted itself says (an error nobody handled, above all) becomes a record."""
    failure = event.get("log_failure")
    trace = (failure.type, failure.value, failure.getTracebackObject()) if failure is not None else None
    logger = logging.getLogger(event.get("log_namespace", "twisted"))
    logger.log(LEVELS.get(event.get("log_level"), logging.INFO), "%s", formatEvent(event), exc_info=trace)


def log_to_standard() -> None:
    """Every line of Twisted's own goes to the standard library's log, as ours do; not where those go to Twisted's.

    The faces for asyncio and for plain calls do that. Calling it twice is harmless.
    """
    if _to_twisted not in logging.getLogger().handlers:
        globalLogPublisher.addObserver(to_standard)


def log_to_twisted() -> None:
    """Every line of this process goes to Twisted's log: ours whatever their level, those of others from info on.

    The daemons and `mq` call it; so does a program of one's own that runs under twistd. Calling it twice is harmless.
    """
    with contextlib.suppress(ValueError):
        globalLogPublisher.removeObserver(to_standard)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(_to_twisted)
    logging.getLogger(PACKAGE).setLevel(logging.DEBUG)
