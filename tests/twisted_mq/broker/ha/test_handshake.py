"""The shared secret of the HA port: only slaves with it replicate and count."""

from __future__ import annotations

from typing import Any

from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from tests.support.ha import Replica, Stranger, join_by_hand, run, virtual_network
from twisted_mq.broker.ha.accept_service import MAX_SLAVES
from twisted_mq.protocol.layouts.ha import ConnectionState, encode_report
from twisted_mq.protocol.layouts.ha_handshake import PROOF_OFFSET

SECRET = "a long and random word"


class HandshakeCase(SynchronousTestCase):
    def make(self, master: str | None = SECRET, slave: str | None = SECRET, **options: Any) -> None:
        self.network = virtual_network(3, split=0.8)
        self.master = Replica(self.network, "master", ha_shared_secret=master, **options)
        self.slave = Replica(self.network, "slave", ha_shared_secret=slave)
        self.master.put(10)

    def follow(self, seconds: float) -> list[str]:
        """The log lines of that time."""
        with capturedLogs() as events:
            self.client = self.slave.follow("master")
            run(self.network, seconds)
        return [formatEvent(event) for event in events]

    def assertRefused(self, lines: list[str], *reasons: str) -> None:
        for reason in reasons:
            self.assertEqual(len([line for line in lines if reason in line]), 1, lines)
        self.assertEqual((self.slave.end, self.slave.log), (0, b""))
        self.assertEqual(list(self.master.ha.accept.proven_hosts), [])
        self.assertEqual(self.master.ha.runtime_info().ha_connection_info, [])


class SecretTests(HandshakeCase):
    def test_pair_that_knows_it_replicates(self) -> None:
        self.make(broker_role="SYNC_MASTER", in_sync_replicas=2)
        self.follow(0.5)
        self.assertEqual(self.slave.log, self.master.log)
        waiting = self.master.ha.replicated(self.master.put(1))
        run(self.network, 0.5)
        self.assertTrue(self.successResultOf(waiting))
        self.assertEqual(len(self.master.ha.runtime_info().ha_connection_info), 1)
        self.assertEqual(list(self.master.ha.accept.proven_hosts), ["slave"])

    def test_it_is_shown_anew_on_every_connection(self) -> None:
        self.make()
        self.follow(0.5)
        self.network.reset("master", "slave")
        self.master.put(5)
        run(self.network, 2)
        self.assertEqual(self.slave.log, self.master.log)

    def test_wrong_one_is_refused_with_a_line_on_both_sides(self) -> None:
        self.make(slave="another secret")
        lines = self.follow(0.5)
        self.assertRefused(
            lines, "slave refused", "the slave's haSharedSecret is different", "it refuses haSharedSecret"
        )

    def test_refused_slave_tries_with_growing_pauses(self) -> None:
        self.make(slave="another secret")
        lines = self.follow(20)
        self.assertEqual(len([line for line in lines if "it refuses haSharedSecret" in line]), 6)

    def test_plain_slave_is_refused_with_a_line_on_both_sides(self) -> None:
        self.make(slave=None)
        lines = self.follow(0.5)
        self.assertRefused(lines, "the master asks for haSharedSecret", "slave refused")

    def test_plain_master_is_told_nothing_and_left(self) -> None:
        self.make(master=None)
        lines = self.follow(20.5)
        self.assertRefused(lines, "it does not ask for haSharedSecret")
        self.assertIs(self.client.state, ConnectionState.READY)
        self.assertEqual(self.master.ha.accept.acknowledged_offsets(), [])


class StrangerTests(HandshakeCase):
    def test_report_without_proof_ends_the_connection_and_never_counts(self) -> None:
        self.make(broker_role="SYNC_MASTER", in_sync_replicas=2)
        waiting = self.master.ha.replicated(self.master.end)
        stranger = join_by_hand(self.network, "stranger", make=Stranger)
        self.assertEqual(len(stranger.data), 44)
        self.assertEqual(self.master.ha.runtime_info().ha_connection_info, [])
        stranger.transport.write(encode_report(self.master.end))
        run(self.network, 0.2)
        self.assertEqual((stranger.lost, len(stranger.data)), (True, 44))
        self.assertNoResult(waiting)
        self.master.ha.stop()

    def test_strangers_keep_no_slave_out(self) -> None:
        self.make()
        strangers = [join_by_hand(self.network, f"stranger{number}", make=Stranger) for number in range(MAX_SLAVES)]
        self.follow(0.5)
        self.assertEqual(self.slave.log, self.master.log)
        self.assertEqual([stranger.lost for stranger in strangers], [True] + [False] * (MAX_SLAVES - 1))

    def test_idle_strangers_keep_no_slave_out_without_a_secret_either(self) -> None:
        self.make(master=None, slave=None)
        strangers = [join_by_hand(self.network, f"stranger{number}", make=Stranger) for number in range(MAX_SLAVES)]
        self.follow(0.5)
        self.assertEqual(self.slave.log, self.master.log)
        self.assertEqual(sum(stranger.lost for stranger in strangers), 1)

    def test_silent_stranger_is_dropped_whatever_it_dribbles(self) -> None:
        self.make()
        stranger = join_by_hand(self.network, "stranger", make=Stranger)
        for byte in encode_report(PROOF_OFFSET)[:7]:
            stranger.transport.write(bytes([byte]))
            run(self.network, 3)
        self.assertTrue(stranger.lost)
        self.assertEqual(self.master.ha.accept.connections, [])
