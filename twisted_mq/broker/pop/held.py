"""Decides whether a pop or a notification may wait (Apache: PopLongPollingService.polling)."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeVar, cast

from twisted.internet import defer

from twisted_mq.broker.long_polling import EARLY_MS
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.waiting_requests import WaitingRequest
from twisted_mq.remoting.channel import Answer, Ready

T = TypeVar("T")


class NotHeld(enum.Enum):
    """The reason that a request does not wait (Apache: PollingResult)."""

    NO_TIME = "it may not wait, or its time is over"
    FULL = "too many wait"


def hold(broker: PopParts, request: WaitingRequest, poll_time: int) -> defer.Deferred[Ready] | NotHeld:
    """Hold a request that asks to wait, unless it ends at once or too many wait already."""
    polling, options, line = broker.polling, broker.options, request.line
    if poll_time <= 0:
        return NotHeld.NO_TIME
    if polling.length(line) > options.pop_polling_size:
        return NotHeld.FULL
    if broker.now_ms() > request.expires_ms - EARLY_MS:
        return NotHeld.NO_TIME
    if not polling.has_room(request, options.max_pop_polling_size):
        return NotHeld.FULL
    return polling.hold(request)


def after(result: defer.Deferred[T], answer: Callable[[T], Answer]) -> defer.Deferred[Ready]:
    """Return the answer made from the result once it is there; making it may take time again."""
    return cast("defer.Deferred[Ready]", result.addCallback(answer))
