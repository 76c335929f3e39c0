"""Health of a master's slave, and of a slave."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from tests.support.ha import Replica, join_by_hand, run, virtual_network
from twisted_mq.broker.ordering.own_health import MasterHealth, SlaveHealth
from twisted_mq.protocol.bodies import HARuntimeInfo, encode_body
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingConnectError


class MasterTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.network = virtual_network()
        self.master = Replica(self.network, "master", broker_role="SYNC_MASTER")
        self.master.put(3)
        self.health = MasterHealth(self.master, self.network.clock.seconds)

    def look(self, seconds: float = 0.0) -> str | None:
        """Return its fault after some time, with four checks a second."""
        for _ in range(round(seconds / 0.25)):
            run(self.network, 0.25)
            self.health.look()
        self.health.acknowledged()
        return self.health.look()

    def test_without_a_slave(self) -> None:
        self.assertEqual(self.look(), "no slaves replicate from it; it needs exactly one")
        self.assertFalse(self.health.complete)
        self.assertEqual(self.health.confirmed, self.master.end)

    def test_slave_that_has_all_makes_the_group_well(self) -> None:
        slave = join_by_hand(self.network, "slave")
        slave.report(0)
        self.assertEqual(self.look(0.25), "it restarted, and its slave is not in sync with it yet")
        slave.report(self.master.end)
        self.assertIsNone(self.look(0.25))
        self.assertTrue(self.health.complete)

    def test_slave_that_does_not_confirm_the_masters_session_leaves_the_group_without_sends(self) -> None:
        slave = join_by_hand(self.network, "slave")
        slave.report(self.master.end)
        self.assertIsNone(self.look(0.25))
        self.master.ha.master_session = lambda: 7
        self.assertIn("its slave has not confirmed its session", self.look(0.25) or "")

    def test_two_slaves_are_one_too_many(self) -> None:
        for name in ("slave", "stranger"):
            join_by_hand(self.network, name).report(self.master.end)
        self.assertEqual(self.look(0.25), "2 slaves replicate from it; it needs exactly one")

    def test_strangers_links_count_neither_for_health_nor_against_it(self) -> None:
        """This includes a master whose sends wait for no slave: in an ordered group the slave's acknowledgements count."""
        network = self.network = virtual_network()
        options = {"namesrv_addr": "one:9876", "order_coordinator": "memory"}
        self.master = Replica(network, "master", **options)
        self.master.put(3)
        self.health = MasterHealth(self.master, network.clock.seconds)
        stranger = join_by_hand(network, "stranger")
        stranger.report(self.master.end)
        self.assertEqual(
            self.look(0.25),
            "its slave's copy does not count: register the slave with the name servers, or set haSharedSecret or"
            " haAllowedSlaves",
        )
        self.assertEqual(self.master.ha.accept.acknowledged_offsets(), [])
        slave = join_by_hand(network, "slave")
        slave.report(self.master.end)
        run(network, 0.25)
        hosts = {one.host: one.slave_ack_offset for one in self.master.ha.accept.connections}
        self.assertEqual(len(hosts), 2)
        self.master.ha.accept.count(lambda host: host == "slave")
        self.assertIsNone(self.look(0.25))

    def test_slave_has_a_second_for_each_message(self) -> None:
        slave = join_by_hand(self.network, "slave")
        slave.report(self.master.end)
        self.assertIsNone(self.look(3))
        for _ in range(5):
            end = self.master.put(1)
            self.assertIsNone(self.look(0.75))
            slave.report(end)
        self.assertIsNone(self.look(3))
        self.master.put(1)
        self.assertEqual(self.look(1.5), "its slave does not keep up")
        slave.report(self.master.end)
        self.assertIsNone(self.look(0.25))

    def test_slave_that_comes_back_far_behind_is_waited_for(self) -> None:
        slave = join_by_hand(self.network, "slave")
        slave.report(self.master.end)
        self.look(0.25)
        slave.transport.abortConnection()
        self.assertEqual(self.look(0.25), "no slaves replicate from it; it needs exactly one")
        behind = self.master.end
        self.master.put(5)
        self.look(0.25)
        again = join_by_hand(self.network, "slave")
        again.report(behind)
        self.assertEqual(self.look(0.25), "its slave does not keep up")
        again.report(self.master.end)
        self.assertIsNone(self.look(0.25))

    def test_slave_whose_copy_does_not_count(self) -> None:
        slave = join_by_hand(self.network, "slave")
        slave.report(self.master.end)
        run(self.network, 0.1)
        self.master.ha.accept.connections[0].counts = None
        self.assertIn("its slave's copy does not count", self.look() or "")

    def test_what_the_slave_acknowledged_is_confirmed_for_good(self) -> None:
        self.master.ha.master_session = lambda: 7
        slave = join_by_hand(self.network, "slave")
        slave.confirm(7)
        slave.report(self.master.end)
        end = self.master.put(2)
        run(self.network, 0.1)
        self.assertFalse(self.health.acknowledged())
        slave.report(end)
        run(self.network, 0.1)
        self.assertTrue(self.health.acknowledged())
        slave.transport.abortConnection()
        self.look(0.25)
        self.assertEqual(self.health.confirmed, end)

    def test_what_the_slave_acknowledged_is_confirmed_later_although_the_slave_is_gone(self) -> None:
        """Sends were answered for it."""
        self.master.ha.master_session = lambda: 7
        slave = join_by_hand(self.network, "slave")
        slave.confirm(7)
        slave.report(self.master.put(2))
        run(self.network, 0.1)
        before = self.health.confirmed
        self.health.note()
        self.assertEqual(self.health.confirmed, before)
        slave.transport.abortConnection()
        run(self.network, 0.1)
        self.assertEqual((self.health.acknowledged(), self.health.confirmed), (True, self.master.end))

    def test_what_the_slave_acknowledged_in_another_session_is_not_confirmed(self) -> None:
        """Its group may have told that all is consumed: a consumer that got this would get it behind a newer term."""
        slave, before, session = join_by_hand(self.network, "slave"), self.master.end, 7
        self.master.ha.master_session = lambda: session
        slave.confirm(6)
        end = self.master.put(2)
        slave.report(end)
        run(self.network, 0.1)
        self.assertEqual((self.health.acknowledged(), self.health.confirmed), (False, before))
        slave.confirm(7)
        run(self.network, 0.1)
        self.assertEqual((self.health.acknowledged(), self.health.confirmed), (True, end))
        session = 0
        slave.confirm(0)
        slave.report(self.master.put(1))
        run(self.network, 0.1)
        self.assertEqual((self.health.acknowledged(), self.health.confirmed), (False, end))

    def test_slave_with_more_than_a_recovered_master_is_named(self) -> None:
        self.master.ha.accept.recovered()
        join_by_hand(self.network, "slave").report(self.master.end + 100)
        self.assertIn("has more than its own", self.look(0.25) or "")


class SlaveTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.network = virtual_network()
        self.master = Replica(self.network, "master")
        self.slave = Replica(self.network, "slave", broker_role="SLAVE", broker_id=1)
        self.asked: list[str] = []
        self.answer: Any = None
        self.health = SlaveHealth(self.slave, self.invoke, lambda: "master:10911")

    def invoke(self, address: str, command: RemotingCommand, timeout: float) -> defer.Deferred[RemotingCommand]:
        self.asked.append(address)
        if self.answer is None:
            return defer.fail(RemotingConnectError(address))
        info = HARuntimeInfo(master=True, master_commit_log_max_offset=self.answer)
        return defer.succeed(RemotingCommand(0, body=encode_body(info)))

    def look(self) -> str | None:
        run(self.network, 0.5)
        self.health.look()
        return self.health.look()

    def test_complete_once_it_has_what_its_master_had(self) -> None:
        waits = "its slave restarted, and is not in sync with its master yet"
        self.master.put(3)
        self.answer = self.master.end
        self.assertEqual(self.look(), waits)
        self.assertEqual(self.asked, [], "it follows nobody yet")
        self.slave.follow("master")
        self.answer = None
        self.assertEqual(self.look(), waits)
        self.answer = self.master.end + 100
        self.assertEqual(self.look(), waits)
        self.answer = self.master.end
        self.assertIsNone(self.look())
        count = len(self.asked)
        self.assertIsNone(self.look())
        self.assertEqual(len(self.asked), count, "nothing more is asked")

    def test_master_that_is_none_answers_nothing(self) -> None:
        self.slave.follow("master")
        run(self.network, 0.5)
        self.health = SlaveHealth(self.slave, self.invoke, lambda: None)
        self.assertIsNotNone(self.look())
        self.assertEqual(self.asked, [])
