"""The duties of a slave that acts for its master, beside serving reads (Apache: BrokerController.changeSpecialServiceStatus).

With enableRemoteEscape delayed and timed messages that come due, and half messages, go to other masters. Without it they wait
for the master, and nothing is lost.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.broker.acting.escape import EscapeBridge, EscapeParts
from twisted_mq.broker.acting.escaping_check import EscapedHalves, HalfParts
from twisted_mq.broker.schedule.waiting_messages import WaitingMessages
from twisted_mq.logs import Logger
from twisted_mq.remoting.channel import Invoke


class ActingParts(EscapeParts, HalfParts, Protocol):
    """The slave that acts."""

    clock: interfaces.IReactorTime
    waiting: WaitingMessages


class ActingDuties:
    """The duties of one slave. `change` begins and ends them."""

    log = Logger()

    def __init__(self, broker: ActingParts, invoke: Invoke) -> None:
        self._broker = broker
        self._invoke = invoke
        self._bridge: EscapeBridge | None = None
        self._halves: EscapedHalves | None = None

    def change(self, acts: bool) -> defer.Deferred[None]:
        """Begin, or cease. Fires at once, or when how far the slave came is on disk or failed to get there."""
        if acts:
            self._begin()
            return defer.succeed(None)
        return self.stop().addErrback(self._not_ended)

    def _begin(self) -> None:
        broker = self._broker
        bridge = EscapeBridge(broker, self._invoke, self._wake)
        if not bridge.is_on:
            self.log.warn(
                "delayed, timed and half messages wait for the master: enableRemoteEscape={e}",
                e=str(broker.options.enable_remote_escape).lower(),
            )
            return
        self._bridge = bridge
        self._halves = EscapedHalves(broker, bridge.put)
        broker.waiting.act(bridge.put, bridge.hold)
        self._halves.go_on()

    def _wake(self) -> None:
        self._broker.waiting.wake()
        self.check_halves()

    def check_halves(self) -> None:
        """Walk through half messages that came, or could not be sent before; called each transactionCheckInterval."""
        if self._halves is not None:
            self._halves.go_on()

    def stop(self) -> defer.Deferred[None]:
        """Cease; fires when how far the slave came is on disk. A second call does nothing."""
        halves, bridge = self._halves, self._bridge
        self._halves = self._bridge = None
        if halves is None or bridge is None:
            return defer.succeed(None)
        halves.stop()
        self.log.info("messages sent to other masters while the master was away: count={n}", n=bridge.sent)
        return self._broker.waiting.cease()

    def _not_ended(self, reason: failure.Failure) -> None:
        self.log.failure("how far this slave came in its master's place is not on disk", reason)
