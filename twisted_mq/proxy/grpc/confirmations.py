"""Confirms that a client has taken the answers of calls: a ping follows the answers, and its answer confirms them."""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.protocol.http2.events import LateReset, PingAnswered
from twisted_mq.protocol.http2.server_connection import ServerConnection

CONFIRM = b"mq-taken"
"""The content of the ping after answers that a client has to confirm."""
MOST_UNCONFIRMED = 10_000
"""The limit of ended calls with unconfirmed answers, for each client."""


class Confirmations:
    """The ended calls of one connection whose answers wait to be confirmed.

    Calls each `confirm` once: True if the answer was taken.
    """

    def __init__(self, http2: ServerConnection) -> None:
        self._http2 = http2
        self.sent: dict[int, Callable[[bool], object]] = {}
        """Streams whose answers have left, and that no ping has followed."""
        self._pinged_for: dict[int, Callable[[bool], object]] = {}
        """Streams that a ping has followed. Its answer confirms that the client has taken their answers."""

    def expect(self, stream_id: int, confirm: Callable[[bool], object]) -> bool:
        """Expect the confirmation of a stream whose answers have left. Return False if too many are expected."""
        self.sent[stream_id] = confirm
        return len(self.sent) <= MOST_UNCONFIRMED

    def ping(self) -> None:
        """Send a ping behind the answers that have left; one at a time is on its way."""
        if not self._pinged_for:
            self._pinged_for, self.sent = self.sent, {}
            self._http2.ping(CONFIRM)

    def late_reset(self, event: LateReset) -> None:
        """Handle the reset of a call that was answered: what it was answered with has not been taken."""
        for waiting in (self.sent, self._pinged_for):
            confirm = waiting.pop(event.stream_id, None)
            if confirm is not None:
                confirm(False)

    def ping_answered(self, event: PingAnswered) -> None:
        """Confirm the answers before the ping."""
        if event.content == CONFIRM:
            taken, self._pinged_for = self._pinged_for, {}
            for confirm in taken.values():
                confirm(True)

    def lost(self) -> None:
        """Confirm no answers any more: the connection is gone."""
        for confirm in (*self._pinged_for.values(), *self.sent.values()):
            confirm(False)
        self._pinged_for, self.sent = {}, {}
