"""Ordered sends that wait for disk and slave: acknowledged, or refused when the broker learns that it is the head no longer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.ordering.sends import TakenSends
from twisted_mq.broker.ordering.units import Units
from twisted_mq.ordering.lists import WHOLE_TOPIC, Lists, OrderedTopic, Term
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus

HEAD = Lists(1, ("a",), (Term("a", 1),))
NEXT = Lists(2, ("b",), (Term("a", 1), Term("b", 2)))


class Waiting(SynchronousTestCase):
    """Each test for sends that wait for the slave alone, and for those that wait for the disk, too."""

    def begin(self, flush: str) -> defer.Deferred[Any]:
        """Begin a send of a plain producer to a topic that moves as one; it waits."""
        self.flushed: defer.Deferred[bool] = defer.Deferred()
        self.replicated: defer.Deferred[bool] = defer.Deferred()
        broker: Any = SimpleNamespace(
            options=BrokerOptions(broker_role="SYNC_MASTER", flush_disk_type=flush),
            flushed=lambda offset: self.flushed,
            ha=SimpleNamespace(replicated_in_session=lambda offset: self.replicated, waits_for_slaves=True),
        )
        broker.durability = Durability(broker)
        self.units = Units("a", lambda: True)
        self.units.declared({"T": OrderedTopic("T", 1, ("a", "b"), together=True)})
        self.unit = self.units.get(("T", WHOLE_TOPIC))
        assert self.unit is not None
        self.units.learn(self.unit, Lists(), None)
        self.units.learn(self.unit, HEAD, None)
        message = InnerMessage("T", 0, b"x", b"", {}, 0)
        result = PutResult(PutStatus.PUT_OK, end_offset=100)
        coordinator: Any = None
        sends = TakenSends(broker, self.units, coordinator)
        waiting: Any = sends.take("together", message, lambda put: result, lambda put, code: b"sent %d" % code)
        self.assertNoResult(waiting)
        return waiting

    def refused(self, waiting: defer.Deferred[Any]) -> str:
        """Return the remark of a refused send."""
        error: BrokerError = self.failureResultOf(waiting, BrokerError).value
        self.assertEqual((error.response_code, self.unit.unanswered), (ResponseCode.NO_PERMISSION, {}))
        return error.remark

    def fire(self) -> None:
        """Disk and slave have it."""
        self.flushed.callback(True)
        self.replicated.callback(True)

    def test_what_disk_and_slave_have_is_acknowledged(self) -> None:
        for flush in ("ASYNC_FLUSH", "SYNC_FLUSH"):
            waiting = self.begin(flush)
            self.fire()
            self.assertEqual((self.successResultOf(waiting), self.unit.unanswered), (b"sent 0", {}))

    def test_what_waits_when_the_epoch_is_over_is_refused_at_once_and_never_acknowledged(self) -> None:
        for flush in ("ASYNC_FLUSH", "SYNC_FLUSH"):
            waiting = self.begin(flush)
            self.units.learn(self.unit, NEXT, None)
            self.assertIn("b accepts them in epoch 2. Send there", self.refused(waiting))
            self.fire()  # late, and told to nobody

    def test_what_waits_when_the_broker_stops_is_refused(self) -> None:
        for flush in ("ASYNC_FLUSH", "SYNC_FLUSH"):
            waiting = self.begin(flush)
            self.units.close("it stops")
            self.assertIn("a does not accept this send, it stops", self.refused(waiting))

    def test_what_its_channel_gives_up_is_counted_no_more(self) -> None:
        for flush in ("ASYNC_FLUSH", "SYNC_FLUSH"):
            waiting = self.begin(flush)
            waiting.cancel()
            self.failureResultOf(waiting, defer.CancelledError, defer.FirstError)
            self.assertEqual(self.unit.unanswered, {})
            self.units.close("it stops")
            self.fire()
