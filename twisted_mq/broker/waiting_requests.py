"""Defines the requests that wait for messages, and the lines that they form."""

from __future__ import annotations

import enum
from collections.abc import Collection, Hashable
from typing import NamedTuple, Protocol

from twisted_mq.remoting.channel import Answer

Place = tuple[str, int]
"""Topic and queue id of an arriving message, or ALL_QUEUES."""


class WaitingKind(enum.IntEnum):
    """The kinds of waiting requests, in the order in which they are answered."""

    PULL = 0
    NOTIFICATION = 1
    POP = 2


class WaitingLine(NamedTuple):
    """Requests that wait for the same messages. The pulls of all groups share one line: their group is empty here."""

    kind: WaitingKind
    topic: str
    group: str
    queue_id: int


class RequestConnection(Hashable, Protocol):
    """The connection of a request."""

    connected_now: bool

    @property
    def share_address(self) -> str: ...


class WaitingRequest(Protocol):
    """A request that found nothing yet. Messages with tags codes other than these do not match it."""

    @property
    def line(self) -> WaitingLine: ...

    @property
    def channel(self) -> RequestConnection: ...

    @property
    def expires_ms(self) -> int: ...

    @property
    def tags_codes(self) -> Collection[int] | None: ...

    def attempt(self, last: bool) -> Answer:
        """Return the answer; None while it is missing, which the last attempt never returns."""
