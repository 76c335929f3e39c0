"""Puts the question who asks, and whether he may, before each processor of a server's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from twisted.internet import defer

from twisted_mq.protocol.requests.rights import BY_CODE
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel, Processor

Checked = defer.Deferred[None] | None
"""None at once, or later."""


class Check(Protocol):
    """One kind of access control."""

    def check(self, channel: Channel, command: RemotingCommand) -> Checked:
        """Raises, or fails with, BrokerError for a request that is refused."""


def guarded(table: Mapping[int, Processor], check: Check | None) -> dict[int, Processor]:
    """The table with the check before each processor; without one as it is, so that nothing is looked at twice.

    Raises ValueError for a code that nobody has said of what it needs.
    """
    unknown = [code for code in table if code not in BY_CODE]
    if unknown:
        raise ValueError(f"nobody knows what these requests need: {unknown}")
    return dict(table) if check is None else {code: _asking(check.check, one) for code, one in table.items()}


def _asking(check: Callable[[Channel, RemotingCommand], Checked], processor: Processor) -> Processor:
    def ask_first(channel: Channel, command: RemotingCommand) -> Answer:
        later = check(channel, command)
        if later is None:
            return processor(channel, command)
        return _answered(later, processor, channel, command)

    return ask_first


def _answered(later: defer.Deferred[None], processor: Processor, channel: Channel, command: RemotingCommand) -> Answer:
    answered: defer.Deferred[object] = later.addCallback(lambda _: processor(channel, command))
    return answered  # type: ignore[return-value]  # what a processor answers, now inside a Deferred
