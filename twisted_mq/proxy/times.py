"""Converts protobuf's Duration and Timestamp from and to milliseconds."""

from __future__ import annotations

from typing import Any

from google.protobuf.message_factory import GetMessageClass

from twisted_mq.proxy.messages import POOL

Duration: type[Any] = GetMessageClass(POOL.FindMessageTypeByName("google.protobuf.Duration"))
Timestamp: type[Any] = GetMessageClass(POOL.FindMessageTypeByName("google.protobuf.Timestamp"))


def duration(ms: int) -> Any:
    """Return a Duration of that many milliseconds."""
    return Duration(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def timestamp(ms: int) -> Any:
    """Return a Timestamp of that many milliseconds since 1970."""
    return Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def set_time(made: Any, ms: int) -> None:
    """Set a Timestamp to that many milliseconds since 1970. An unset one becomes set."""
    made.seconds, made.nanos = ms // 1000, ms % 1000 * 1_000_000


def milliseconds(time: Any) -> int:
    """Return the milliseconds of a Duration or a Timestamp."""
    return int(time.seconds) * 1000 + int(time.nanos) // 1_000_000
