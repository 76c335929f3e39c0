"""Notices to brokers that the lowest id of their name changed (Apache: NOTIFY_MIN_BROKER_ID_CHANGE).

A stranger that registers brokers chooses their addresses, and how often they come and go. So only some brokers get a notice at
a time, each one notice at a time, and changes that come meanwhile are one notice.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.logs import Logger
from twisted_mq.namesrv.route_values import MinBrokerIdChange
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import NotifyMinBrokerIdChangeRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header

MOST_AT_ONCE = 32
"""Brokers that get a notice at a time."""

SendOneWay = Callable[[str, RemotingCommand], "defer.Deferred[None]"]


@attrs.define(eq=False)
class LowestIdNotices:
    """The notices of one name server. A broker that cannot be reached finds out by itself."""

    log = Logger()

    send_one_way: SendOneWay
    _waiting: dict[str, MinBrokerIdChange] = attrs.field(factory=dict)
    _told_now: set[str] = attrs.field(factory=set)
    _goes_on: bool = False
    _stopped: bool = False

    def tell(self, change: MinBrokerIdChange) -> None:
        """Send notices of a change, now or after others."""
        if not self._stopped:
            self._waiting.update(dict.fromkeys(change.tell, change))
            self._go_on()

    def stop(self) -> None:
        """Send no more notices."""
        self._stopped = True
        self._waiting.clear()

    def _go_on(self) -> None:
        if self._goes_on:  # a notice that was sent at once ends inside of the loop
            return
        self._goes_on = True
        try:
            while len(self._told_now) < MOST_AT_ONCE and self._send_next():
                pass
        finally:
            self._goes_on = False

    def _send_next(self) -> bool:
        address = next((one for one in self._waiting if one not in self._told_now), None)
        if address is not None:
            self._told_now.add(address)
            sent = self.send_one_way(address, _notice(self._waiting.pop(address)))
            sent.addErrback(self._not_told).addCallback(self._told, address)
        return address is not None

    def _told(self, result: object, address: str) -> None:
        self._told_now.discard(address)
        self._go_on()

    def _not_told(self, reason: failure.Failure) -> None:
        self.log.info("lowest broker id not told: {e}", e=reason.value)


def _notice(change: MinBrokerIdChange) -> RemotingCommand:
    header = NotifyMinBrokerIdChangeRequestHeader(
        min_broker_id=change.min_broker_id,
        min_broker_addr=change.min_broker_address,
        offline_broker_addr=change.offline_address,
        ha_broker_addr=change.ha_address,
    )
    return RemotingCommand.request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, encode_header(header))
