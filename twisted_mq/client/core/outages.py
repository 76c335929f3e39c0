"""The servers that a client cannot reach, and since when. Logs the beginning and the end of an outage.

During an outage the client looks for the server more often than its timers do, so that it finds it soon after its
return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs
from twisted.internet import interfaces

from twisted_mq.logs import Logger
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.routing.route_cache import RoutedBroker

SOONEST_SECONDS = 0.5
PART = 60.0
"""The next look comes after 1/60 of the outage's duration so far.

That is each half second in the first half minute, each five seconds after five minutes, and as seldom as by the client's
timer after half an hour.
"""

NAME_SERVERS = "name servers"


@attrs.define(eq=False)
class Outages:
    """The outages of one client's servers. `look` looks for them; the client does so every `usual_seconds` anyway."""

    log = Logger()

    _clock: interfaces.IReactorTime
    _look: Callable[[], object]
    _usual_seconds: float
    _began: dict[str, float] = attrs.Factory(dict)
    """Server address -> when its outage began."""
    _masters: dict[str, str] = attrs.Factory(dict)
    """Broker name -> address of its master, also for brokers that have no route now."""
    _timer: interfaces.IDelayedCall | None = None

    def begin(self, server: str, reason: str) -> None:
        """Begin an outage: the server cannot be reached. Only the first call of an outage counts."""
        if server in self._began:
            return
        self._began[server] = self._clock.seconds()
        self.log.warn("not reached, retrying: {server} {reason}", server=server, reason=reason)
        self._plan()

    def end(self, server: str) -> bool:
        """End an outage: the server is back. Return whether it was in an outage."""
        began = self._began.pop(server, None)
        if began is None:
            return False
        seconds = self._clock.seconds() - began
        self.log.warn("reached again: {server} after {seconds:.1f} s", server=server, seconds=seconds)
        return True

    def refused(self, address: str, reason: str) -> None:
        """Handle a failed connection; for a master, an outage begins."""
        for name, master in self._masters.items():
            if master == address:
                self.begin(address, f"broker={name} {reason}")

    def routes_changed(self, brokers: Iterable[RoutedBroker]) -> None:
        """Take all brokers that routes name now. A master that is no longer among them is in an outage until it is back."""
        now = {one.broker_name: one.address for one in brokers if one.broker_id == MASTER_ID}
        for name, address in self._masters.items():
            if name not in now:
                self.begin(address, f"broker={name} no route has it any more")
            elif address != now[name]:
                self.end(address)
        self._masters.update(now)

    def is_on(self, server: str) -> bool:
        """Return whether the server is in an outage."""
        return server in self._began

    def stop(self) -> None:
        """Forget all outages and stop the timer."""
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
