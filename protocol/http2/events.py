"""The events of a server's connection: what a client has sent."""

from __future__ import annotations

import attrs

Pair = tuple[bytes, bytes]
"""A header's name and value."""


@attrs.define
class Event:
    """Something that a client has sent."""


@attrs.define
class RequestReceived(Event):
    """The headers of a new stream. `ended` says that nothing follows."""

    stream_id: int
    headers: list[Pair]
    ended: bool = False


@attrs.define
class DataReceived(Event):
    """A part of a request, without padding. `ended` says that it is the last one."""

    stream_id: int
    data: bytes
    ended: bool = False


@attrs.define
class RequestEnded(Event):
    """The trailers of a request. Their headers are read and dropped."""

    stream_id: int


@attrs.define
class StreamReset(Event):
    """An open stream is closed at once: by the client, or `provoked`, by a frame that the server had to answer with a reset.

    A provoked reset may name a stream that was closed before.
    """

    stream_id: int
    provoked: bool = False


@attrs.define
class LateReset(Event):
    """The client reset a stream that the server had ended: it did not read the answer, or not all of it."""

    stream_id: int


@attrs.define
class WindowGrew(Event):
    """The client takes more bytes: on one stream, or with 0 on all."""

    stream_id: int


@attrs.define
class SettingsReceived(Event):
    """The client's settings. They hold, and their answer is written."""


@attrs.define
class PingReceived(Event):
    """A ping. Its answer is written."""


@attrs.define
class PingAnswered(Event):
    """The answer to a ping. `content` has 8 bytes."""

    content: bytes


@attrs.define
class PriorityReceived(Event):
    """A PRIORITY frame. It changes nothing."""


@attrs.define
class UnknownFrame(Event):
    """A frame of a kind that RFC 9113 does not know. It is ignored."""


@attrs.define
class GoAwayReceived(Event):
    """The client opens no further streams."""

    error_code: int
