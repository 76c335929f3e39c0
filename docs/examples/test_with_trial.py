"""Test Twisted code with trial, and let two hours pass in a moment.

$ trial ./test_with_trial.py
...PASSED (successes=1)
"""

from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.client import Message, Producer
from twisted_mq.testing import VirtualCluster


class RemindersTest(SynchronousTestCase):
    def test_a_reminder_comes_after_two_hours(self) -> None:
        with VirtualCluster() as cluster:
            producer = Producer(cluster.reactor, group="shop", namesrv=cluster.name_server)
            cluster.run(producer.start())
            cluster.run(producer.send(Message("Reminders", b"pay", delay_time_level=18)))
            cluster.advance(2 * 3600 - 1)
            assert cluster.messages("Reminders") == []
            cluster.advance(2)
            assert [message.body for message in cluster.messages("Reminders")] == [b"pay"]
