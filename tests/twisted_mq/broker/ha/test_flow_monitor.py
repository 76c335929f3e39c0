"""The allowance of a link in seconds of the clock."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.ha.flow_monitor import FlowMonitor


class FlowMonitorCase(SynchronousTestCase):
    def test_a_second_that_begins_meanwhile_is_not_waited_for(self) -> None:
        """A link gathers bytes until its allowance is used up, which takes some time (found by a siege)."""
        clock = Clock()
        monitor = FlowMonitor(clock, 100)
        clock.advance(0.9)
        monitor.add(100)
        self.assertEqual((monitor.allowance(), round(monitor.next_second(), 6)), (0, 0.1))
        clock.advance(0.2)
        self.assertEqual((monitor.next_second(), monitor.allowance()), (0.0, 100))
