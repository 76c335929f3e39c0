"""What a broker follows of the coordinator."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.ordering.declaring import declare, take_back
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.view import OrderView

TOPIC = OrderedTopic("T", 2, ("a", "b"))


class Following(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.ensemble = MemoryEnsemble(self.clock)

    def run_to_end(self, work: Any) -> Any:
        started = work if isinstance(work, defer.Deferred) else defer.Deferred.fromCoroutine(work)
        self.clock.advance(0)
        return self.successResultOf(started)

    def coordinator(self) -> ICoordinator:
        coordinator = self.ensemble.coordinator()
        self.run_to_end(coordinator.start())
        self.addCleanup(lambda: self.run_to_end(coordinator.stop()))
        return coordinator

    def test_topics_come_and_go_also_where_there_was_none_at_first(self) -> None:
        operator, told = self.coordinator(), []
        view = OrderView(self.coordinator(), lambda topic, unit: told.append(unit), lambda: None)
        view.start()
        self.addCleanup(view.stop)
        self.clock.advance(0)
        self.assertEqual((view.is_complete, view.topics), (True, {}))
        self.run_to_end(declare(operator, TOPIC))
        self.clock.advance(0)
        self.assertEqual(view.topics, {"T": TOPIC})
        self.assertEqual(view.units, {("T", "0"): Lists(), ("T", "1"): Lists()})
        self.assertEqual(sorted(told), ["0", "1"])
        self.assertTrue(view.is_complete)
        self.run_to_end(take_back(operator, "T"))
        self.clock.advance(0)
        self.assertEqual((view.topics, view.units), ({}, {}))
