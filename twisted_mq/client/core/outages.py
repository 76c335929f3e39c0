"""The servers that a client cannot reach, and since when: a log line when an outage begins, and one when it is over.

During an outage the client looks for the server more often than its timers do, so that it finds it soon after its return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs
from twisted.internet import interfaces

from twisted_mq.logs import Logger
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.routing.route_cache import BrokerAddress

SOONEST_SECONDS = 0.5
PART = 60.0
"""The next look comes after 1/60 of the time that the outage lasts: each half second in the first half minute, each five
seconds after five minutes, as seldom as by the client's timer after half an hour."""

NAME_SERVERS = "name servers"


@attrs.define(eq=False)
class Outages:
    """The outages of one client's servers. `look` looks for them; `usual_seconds` is how often the client does so anyway."""

    log = Logger()

    _clock: interfaces.IReactorTime
    _look: Callable[[], object]
    _usual_seconds: float
    _began: dict[str, float] = attrs.Factory(dict)
    """When each outage began, by the server's address."""
    _masters: dict[str, str] = attrs.Factory(dict)
    """The addresses of the masters, by broker name, those without a route included."""
    _timer: interfaces.IDelayedCall | None = None

    def begin(self, server: str, reason: str) -> None:
        """The server is not reached. Only the first call of an outage counts."""
        if server in self._began:
            return
        self._began[server] = self._clock.seconds()
        self.log.warn("not reached, tried again until it is: {server} {reason}", server=server, reason=reason)
        self._plan()

    def end(self, server: str) -> bool:
        """The server is back. Returns whether that ends an outage."""
        began = self._began.pop(server, None)
        if began is None:
            return False
        seconds = self._clock.seconds() - began
        self.log.warn("reached again: {server} after {seconds:.1f} s", server=server, seconds=seconds)
        return True

    def refused(self, address: str, reason: str) -> None:
        """A connection could not be made; for a master that is an outage."""
        for name, master in self._masters.items():
            if master == address:
                self.begin(address, f"broker={name} {reason}")

    def routes_changed(self, brokers: Iterable[BrokerAddress]) -> None:
        """These are all the brokers that routes name now: a master among them no more is an outage until it is back."""
        now = {one.broker_name: one.address for one in brokers if one.broker_id == MASTER_ID}
        for name, address in self._masters.items():
            if name not in now:
                self.begin(address, f"broker={name} no route names it any more")
            elif address != now[name]:
                self.end(address)
        self._masters.update(now)

    def is_on(self, server: str) -> bool:
        """Whether the server is in an outage."""
        return server in self._began

    def stop(self) -> None:
        """Forget all outages; no timer runs on."""
        self._began.clear()
        self._masters.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _plan(self) -> None:
        if self._timer is not None or not self._began:
            return
        seconds = max(SOONEST_SECONDS, (self._clock.seconds() - max(self._began.values())) / PART)
        if seconds < self._usual_seconds:
            self._timer = self._clock.callLater(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._began:
            self._look()
        self._plan()
