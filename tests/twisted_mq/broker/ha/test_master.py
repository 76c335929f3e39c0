"""The master's side alone: slaves made by hand report what a test says."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.internet.interfaces import IPushProducer
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.support.ha import RECORD_BYTES, Replica, SlaveByHand, join_by_hand, run, virtual_network
from twisted_mq.broker.ha.accept_service import MAX_SLAVES
from twisted_mq.protocol.bodies import HAConnectionRuntimeInfo, HARuntimeInfo
from twisted_mq.protocol.layouts.ha import ConnectionState, encode_report


class MasterCase(SynchronousTestCase):
    """A master with ten messages in its log."""

    options: dict[str, Any] = {}

    def setUp(self) -> None:
        self.network = virtual_network()
        self.master = Replica(self.network, "master", **self.options)
        self.master.put(10)

    def join(self, name: str = "slave") -> SlaveByHand:
        return join_by_hand(self.network, name)

    def run_for(self, seconds: float) -> None:
        run(self.network, seconds)


class SendingTests(MasterCase):
    def test_nothing_is_sent_before_the_first_report(self) -> None:
        slave = self.join()
        self.run_for(6)
        self.assertEqual(slave.transfers, [])
        self.assertEqual(self.master.ha.accept.connections[0].transfer_from_where, -1)

    def test_offset_0_gets_the_newest_file_and_what_is_appended_later(self) -> None:
        slave = self.join()
        slave.report(0)
        self.run_for(0.1)
        self.assertEqual(slave.received, self.master.log)
        self.master.put(1)
        self.run_for(0.1)
        self.assertEqual(slave.received, self.master.log)

    def test_another_offset_is_served_from_there(self) -> None:
        slave = self.join()
        slave.report(3 * RECORD_BYTES + 1)
        self.run_for(0.1)
        self.assertEqual(slave.transfers[0][0], 3 * RECORD_BYTES + 1)
        self.assertEqual(slave.received, self.master.log[3 * RECORD_BYTES + 1 :])

    def test_every_split_of_the_reports_is_read(self) -> None:
        stream = b"".join(encode_report(offset) for offset in (0, 100, 200, 1020))
        for cut in range(1, len(stream)):
            slave = self.join(f"slave{cut}")
            slave.transport.write(stream[:8])
            self.run_for(0.05)
            slave.transport.write(stream[8:cut] or b"")
            self.run_for(0.02)
            slave.transport.write(stream[max(8, cut) :])
            self.run_for(0.05)
            self.assertEqual(self.master.ha.accept.connections[-1].slave_ack_offset, 1020)
            slave.transport.abortConnection()

    def test_heartbeat_after_silence_names_the_next_offset(self) -> None:
        slave = self.join()
        slave.report(10 * RECORD_BYTES)
        for _ in range(3):
            self.run_for(5.1)
            slave.report(10 * RECORD_BYTES)
        self.assertEqual(slave.transfers, [(10 * RECORD_BYTES, b"")] * 4)  # one at once, three after silence

    def test_no_heartbeat_while_data_flows(self) -> None:
        slave = self.join()
        slave.report(10 * RECORD_BYTES)
        for _ in range(4):
            self.run_for(3)
            slave.report(self.master.put(1))
        self.assertEqual(slave.marks, [10 * RECORD_BYTES])

    def test_writer_is_a_push_producer(self) -> None:
        self.join()
        self.assertTrue(verifyObject(IPushProducer, self.master.ha.accept.connections[0].writer))


class BatchTests(MasterCase):
    options = {"ha_transfer_batch_size": 250}

    def test_transfers_have_the_configured_size_at_most(self) -> None:
        self.master.put(1, b"x" * 1000)
        slave = self.join()
        slave.report(0)
        self.run_for(0.1)
        self.assertEqual(max(len(data) for _, data in slave.transfers), 250)
        self.assertEqual(slave.received, self.master.log)


class BackPressureTests(MasterCase):
    def test_slave_that_reads_nothing_is_sent_no_more_than_the_transport_holds(self) -> None:
        self.master.put(300, b"x" * 10_000)
        slave = self.join()
        slave.transport.pauseProducing()
        slave.report(0)
        self.run_for(1)
        connection = self.master.ha.accept.connections[0]
        self.assertLess(connection.transport.written, 400_000)
        self.assertEqual(slave.received, b"")
        slave.transport.resumeProducing()
        self.run_for(1)
        self.assertEqual(slave.received, self.master.log)

    def test_slow_slave_holds_up_nobody(self) -> None:
        slow, quick = self.join("slow"), self.join("quick")
        slow.transport.pauseProducing()
        for slave in (slow, quick):
            slave.report(0)
        self.master.put(300, b"x" * 10_000)
        self.run_for(1)
        self.assertEqual(quick.received, self.master.log)


class FlowControlTests(MasterCase):
    options = {"ha_flow_control_enable": True, "max_ha_transfer_byte_in_second": 100_000}

    def test_no_second_carries_more_than_allowed(self) -> None:
        self.master.put(40, b"x" * 10_000)
        slave = self.join()
        slave.report(0)
        self.run_for(0.85)
        carried = [len(slave.received)]
        for _ in range(5):
            before = len(slave.received)
            self.run_for(1)
            carried.append(len(slave.received) - before)
        self.assertEqual(slave.received, self.master.log)
        self.assertLessEqual(max(carried), 100_000)


class RefusalTests(MasterCase):
    def assertRefused(self, slave: SlaveByHand, mark: int) -> None:
        self.run_for(0.1)
        self.assertEqual(slave.transfers, [(mark, b"")])
        self.assertTrue(slave.lost)
        self.assertEqual(self.master.ha.accept.connections, [])

    def test_slave_that_is_ahead_is_told_where_this_log_ends(self) -> None:
        slave = self.join()
        slave.report(10 * RECORD_BYTES + 1)
        self.assertRefused(slave, 10 * RECORD_BYTES)

    def test_slave_that_has_what_the_master_lost_is_refused_after_the_master_wrote_on(self) -> None:
        """Else it would go on behind other bytes at the same offsets."""
        accept = self.master.ha.accept
        accept.recovered()
        self.master.put(10)
        slave = self.join()
        slave.report(12 * RECORD_BYTES)
        self.assertRefused(slave, 10 * RECORD_BYTES)
        self.assertEqual(
            accept.ahead,
            f"its slave's log ends at {12 * RECORD_BYTES} and has more than its own, which ended at {10 * RECORD_BYTES}",
        )

    def test_recovered_master_serves_what_it_had_and_what_it_sent_since(self) -> None:
        accept = self.master.ha.accept
        self.send_five_to("first")
        accept.connections[0].close()
        self.run_for(0.1)
        slave = self.join("first")
        slave.report(13 * RECORD_BYTES)
        self.run_for(0.1)
        self.assertEqual(slave.received, self.master.log[13 * RECORD_BYTES :])
        self.assertIsNone(accept.ahead)

    def send_five_to(self, slave: str) -> None:
        """After a recovery."""
        self.master.ha.accept.recovered()
        self.join(slave).report(10 * RECORD_BYTES)
        self.run_for(0.1)
        self.master.put(5)
        self.run_for(0.1)

    def test_recovered_master_goes_by_what_it_sent_to_this_slave(self) -> None:
        """Another slave's copy says nothing of what this one had before the master lost its end."""
        self.send_five_to("first")
        slave = self.join("second")
        slave.report(13 * RECORD_BYTES)
        self.run_for(0.1)
        self.assertEqual((slave.transfers, slave.lost), ([(10 * RECORD_BYTES, b"")], True))

    def test_recovered_master_remembers_so_many_hosts(self) -> None:
        accept = self.master.ha.accept
        self.send_five_to("first")
        accept.connections[0].close()
        for number in range(MAX_SLAVES):
            self.run_for(0.1)
            self.join(f"slave{number}").report(10 * RECORD_BYTES)
            self.run_for(0.1)
            accept.connections[-1].close()
        self.run_for(0.1)
        hosts = [f"slave{number}" for number in range(MAX_SLAVES)]
        self.assertEqual([accept.last_common_offset(one) for one in hosts], [15 * RECORD_BYTES] * MAX_SLAVES)
        self.assertEqual(accept.last_common_offset("first"), 10 * RECORD_BYTES)

    def test_negative_offset_is_refused(self) -> None:
        slave = self.join()
        slave.report(-5)
        self.assertRefused(slave, 10 * RECORD_BYTES)

    def test_slave_before_the_first_byte_is_told_where_this_log_begins(self) -> None:
        copy = Replica(self.network, "second")
        copy.store.append_log(1 << 20, b"")
        slave = join_by_hand(self.network, "slave", "second")
        slave.report(500)
        self.run_for(0.1)
        self.assertEqual((slave.transfers, slave.lost), ([(1 << 20, b"")], True))

    def test_acknowledgement_beyond_what_was_sent_ends_the_link_and_never_counts(self) -> None:
        slave = self.join()
        slave.report(0)
        self.run_for(0.1)
        slave.report(10 * RECORD_BYTES)
        self.run_for(0.1)
        waiting = self.master.ha.transfers.wait(self.master.put(1), 2)
        slave.report(11 * RECORD_BYTES + 1)
        self.run_for(0.1)
        self.assertTrue(slave.lost)
        self.assertNoResult(waiting)
        self.assertEqual(self.master.ha.accept.acknowledged_offsets(), [])
        self.master.ha.stop()
        self.assertFalse(self.successResultOf(waiting))

    def test_silent_slave_is_dropped(self) -> None:
        slave = self.join()
        slave.report(0)
        self.run_for(19.9)
        self.assertFalse(slave.lost)
        self.run_for(0.3)
        self.assertTrue(slave.lost)

    def test_half_open_connection_is_dropped_on_both_halves_alone(self) -> None:
        """The slave's host is gone without a word; what it held does not count for later sends."""
        slave = self.join()
        slave.report(0)
        self.run_for(0.1)
        self.network.host("slave").vanish()
        waiting = self.master.ha.transfers.wait(self.master.put(1), 2)
        self.run_for(4)
        self.assertFalse(self.successResultOf(waiting))
        self.assertEqual(len(self.master.ha.accept.connections), 1)
        self.run_for(17)
        self.assertEqual(self.master.ha.accept.connections, [])

    def test_connections_past_the_limit_are_closed(self) -> None:
        slaves = [self.join(f"slave{number}") for number in range(64)]
        for slave in slaves:
            slave.report(0)
        self.run_for(0.1)
        slaves.append(self.join("slave64"))
        self.run_for(0.1)
        self.assertEqual([slave.lost for slave in slaves], [False] * 64 + [True])


class RoomTests(MasterCase):
    """64 links of strangers, each of which reported like a slave."""

    def strangers(self, *hosts: str) -> list[SlaveByHand]:
        slaves = [self.join(host) for host in hosts]
        for slave in slaves:
            slave.report(0)
        self.run_for(0.1)
        return slaves

    def joined(self, name: str) -> SlaveByHand:
        slave = self.join(name)
        slave.report(0)
        self.run_for(0.1)
        return slave

    def test_the_host_with_the_most_links_gives_way(self) -> None:
        strangers = self.strangers(*["stranger"] * 64)
        slave = self.joined("slave")
        self.assertEqual((slave.lost, slave.received), (False, self.master.log))
        self.assertEqual([one.lost for one in strangers], [True] + [False] * 63)

    def test_a_registered_slave_is_let_in_whatever_others_have_and_stays(self) -> None:
        strangers = self.strangers(*(f"stranger{number}" for number in range(64)))
        self.master.ha.accept.count(lambda host: host == "slave")
        slave = self.joined("slave")
        self.assertEqual((slave.lost, slave.received), (False, self.master.log))
        self.assertEqual([one.lost for one in strangers], [True] + [False] * 63)
        more = self.strangers("one more", "another")
        self.assertEqual(([one.lost for one in more], slave.lost), ([True] * 2, False))


class AllowedSlavesTests(MasterCase):
    options = {"ha_allowed_slaves": "slave-a, slave-b"}

    def test_only_named_hosts_are_served(self) -> None:
        named, stranger = self.join("slave-b"), self.join("stranger")
        named.report(0)
        self.run_for(0.1)
        self.assertEqual((named.lost, stranger.lost), (False, True))
        self.assertEqual(named.received, self.master.log)


class AccessControlTests(MasterCase):
    options = {"authentication_enabled": True}

    def test_nobody_is_served_whom_nothing_tells_from_a_stranger(self) -> None:
        slave = self.join("slave")
        slave.report(0)
        self.run_for(0.1)
        self.assertEqual((slave.lost, slave.received), (True, b""))


class AccountsOfOldTests(AccessControlTests):
    options = {"acl_enable": True}


class RightsAloneTests(AccessControlTests):
    options = {"authorization_enabled": True}


class AllowedUnderAccessControlTests(AllowedSlavesTests):
    options = AllowedSlavesTests.options | {"authentication_enabled": True}


class OpenUnderAccessControlTests(MasterCase):
    options = {"authentication_enabled": True, "ha_open_under_access_control": True}

    def test_everybody_is_served_where_that_is_chosen(self) -> None:
        slave = self.join("slave")
        slave.report(0)
        self.run_for(0.1)
        self.assertEqual(slave.received, self.master.log)


class WaitingTests(MasterCase):
    options = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 3}

    def served(self, *names: str) -> list[SlaveByHand]:
        slaves = [self.join(name) for name in names]
        for slave in slaves:
            slave.report(0)
        self.run_for(0.1)
        return slaves

    def test_send_waits_for_as_many_copies_as_configured(self) -> None:
        self.assertTrue(self.master.ha.waits_for_slaves)
        first, second, third = self.served("a", "b", "c")
        end = self.master.put(1)
        waiting = self.master.ha.replicated(end)
        self.run_for(0.1)
        first.report(end)
        second.report(end - 1)
        self.run_for(0.1)
        self.assertNoResult(waiting)
        third.report(end)
        self.run_for(0.1)
        self.assertTrue(self.successResultOf(waiting))

    def test_one_acknowledgement_answers_all_that_wait_for_less(self) -> None:
        first, second = self.served("a", "b")
        waiting = [self.master.ha.replicated(self.master.put(1)) for _ in range(5)]
        self.run_for(0.1)
        for slave in (first, second):
            slave.report(14 * RECORD_BYTES)
        self.run_for(0.1)
        self.assertEqual([one.called for one in waiting], [True] * 4 + [False])
        self.master.ha.stop()

    def test_too_few_slaves_answer_false_after_the_timeout(self) -> None:
        (slave,) = self.served("a")
        end = self.master.put(1)
        waiting = [self.master.ha.replicated(end)]
        self.run_for(1)
        waiting.append(self.master.ha.replicated(self.master.put(1)))
        slave.report(end)
        self.run_for(1.9)
        self.assertEqual([one.called for one in waiting], [False, False])
        self.run_for(0.2)
        self.assertEqual([one.called for one in waiting], [True, False])
        self.run_for(1)
        self.assertEqual([self.successResultOf(one) for one in waiting], [False, False])
        self.assertEqual(len(self.master.ha.transfers), 0)

    def test_status_names_every_slave(self) -> None:
        first, _ = self.served("a", "b")
        first.report(1000)
        self.run_for(0.1)
        self.run_for(1)
        slaves = self.master.ha.runtime_info()
        self.assertEqual(
            slaves,
            HARuntimeInfo(
                master=True,
                master_commit_log_max_offset=1020,
                in_sync_slave_nums=2,
                ha_connection_info=[
                    HAConnectionRuntimeInfo("a:40001", 1000, 20, True, 1020 + 12 * 11, 1020),
                    HAConnectionRuntimeInfo("b:40001", 0, 1020, True, 1020 + 12 * 11, 1020),
                ],
            ),
        )


class LagTests(MasterCase):
    options = {"ha_max_gap_not_in_sync": 2 * RECORD_BYTES}

    def test_slave_that_lags_more_than_allowed_is_not_in_sync(self) -> None:
        """Apache: haMaxGapNotInSync, haSlaveFallbehindMax before 5.0; the gap itself counts as too much."""
        slave = self.join()
        slave.report(0)
        self.run_for(0.1)
        for held, in_sync in ((8 * RECORD_BYTES, False), (8 * RECORD_BYTES + 1, True)):
            slave.report(held)
            self.run_for(0.1)
            info = self.master.ha.runtime_info()
            self.assertEqual((info.in_sync_slave_nums, info.ha_connection_info[0].in_sync), (int(in_sync), in_sync))


class OneCopyTests(MasterCase):
    options = {"broker_role": "SYNC_MASTER"}

    def test_one_copy_is_the_masters_own(self) -> None:
        """Observed of 5.3.3: a SYNC_MASTER with inSyncReplicas 1 waits for no slave."""
        self.assertFalse(self.master.ha.waits_for_slaves)
        self.assertTrue(self.successResultOf(self.master.ha.transfers.wait(5, 1)))


class StopTests(MasterCase):
    def test_stop_closes_all_and_may_be_repeated(self) -> None:
        slave = self.join()
        slave.report(0)
        self.run_for(0.1)
        connection = self.master.ha.accept.connections[0]
        for _ in range(2):
            self.master.ha.stop()
        self.run_for(0.1)
        self.assertEqual((slave.lost, connection.state), (True, ConnectionState.SHUTDOWN))
        self.assertEqual(self.network.host("master").getDelayedCalls(), [])

    def test_waiting_sends_are_answered_on_stop(self) -> None:
        waiting: list[defer.Deferred[bool]] = [self.master.ha.transfers.wait(5, 2) for _ in range(2)]
        self.master.ha.stop()
        self.assertEqual([self.successResultOf(one) for one in waiting], [False, False])
