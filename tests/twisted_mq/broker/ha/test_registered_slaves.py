"""A SYNC_MASTER without a secret: whose copies count, when the name servers answer and when they do not."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer
from twisted.logger import LogLevel, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from tests.support.ha import RECORD_BYTES, Replica, SlaveByHand, join_by_hand, run, virtual_network
from twisted_mq.broker.ha.accept_service import STRANGERS_BYTES
from twisted_mq.broker.ha.host_names import addresses_of
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.broker.ha.registered_slaves import RegisteredSlaves
from twisted_mq.protocol.bodies import BrokerMemberGroup, GetBrokerMemberGroupResponseBody, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.reactor_threads import at_once
from twisted_mq.remoting.errors import RemotingConnectError

MASTER, SLAVE, STRANGER = "10.0.0.1", "10.0.0.2", "10.0.0.66"


@attrs.define(eq=False)
class NameServers:
    """Each answers with its own members; None: it is away."""

    members: dict[str, dict[int, str] | None]
    asked: list[tuple[str, int, dict[str, str]]] = attrs.field(factory=list)

    def invoke(self, address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        self.asked.append((address, command.code, dict(command.ext_fields)))
        members = self.members[address]
        if members is None:
            return defer.fail(RemotingConnectError(address))
        body = encode_body(GetBrokerMemberGroupResponseBody(BrokerMemberGroup("C", "broker-a", members)))
        return defer.succeed(command.answer(body=body))


class RegisteredSlavesCase(SynchronousTestCase):
    own_ip = MASTER
    options: dict[str, Any] = {}

    def setUp(self) -> None:
        self.network = virtual_network()
        settings = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "namesrv_addr": "one:9876;two:9876"}
        self.master = Replica(self.network, MASTER, broker_cluster_name="C", **settings | self.options)
        self.master.put(10)
        self.registered(None)

    def registered(self, members: dict[int, str] | None, second: dict[int, str] | None = None) -> None:
        """Set the answers of the two name servers."""
        self.name_servers = NameServers({"one:9876": members, "two:9876": second})
        if not hasattr(self, "slaves"):
            group = MemberGroup(self.master.options, self.master.options.name_servers, self.invoke)
            self.slaves = RegisteredSlaves(self.master.ha.accept, group, self.own_ip, at_once)

    def invoke(self, *arguments: Any) -> defer.Deferred[RemotingCommand]:
        return self.name_servers.invoke(*arguments)

    def look(self) -> list[str]:
        """Ask the name servers; the warnings that were logged."""
        with capturedLogs() as events:
            self.successResultOf(self.slaves.look())
        return [formatEvent(event) for event in events if event["log_level"] >= LogLevel.warn]

    def join(self, host: str) -> SlaveByHand:
        """A link from there that was sent all there is, and says it holds it."""
        slave = join_by_hand(self.network, host, MASTER)
        for offset in (0, 10 * RECORD_BYTES):
            slave.report(offset)
            run(self.network, 0.1)
        return slave

    def copies(self) -> list[int]:
        return list(self.master.ha.accept.acknowledged_offsets())


class CountingTests(RegisteredSlavesCase):
    def test_strangers_acknowledgement_lets_no_send_go(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        stranger, end = self.join(STRANGER), self.master.put(1)
        waiting = self.master.ha.replicated(end)
        run(self.network, 0.1)
        stranger.report(end)
        run(self.network, 0.1)
        self.assertNoResult(waiting)
        slave = self.join(SLAVE)
        slave.report(end)
        run(self.network, 0.1)
        self.assertTrue(self.successResultOf(waiting))

    def test_what_a_stranger_was_sent_makes_no_slaves_log_a_part_of_this_one(self) -> None:
        """The master lost its log's end and wrote on: the slave has other bytes where the stranger was sent these."""
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.master.ha.accept.recovered()
        stranger = self.join(STRANGER)
        self.look()
        stranger.report(self.master.put(5))
        run(self.network, 0.1)
        for leaves in (False, True):
            if leaves:
                stranger.transport.abortConnection()
                run(self.network, 0.1)
            slave = join_by_hand(self.network, SLAVE, MASTER)
            slave.report(12 * RECORD_BYTES)
            run(self.network, 0.1)
            self.assertTrue(slave.lost)

    def test_name_servers_are_asked_for_the_brokers_own_group(self) -> None:
        self.registered({0: f"{MASTER}:10911"})
        self.look()
        fields = {"clusterName": "C", "brokerName": "broker-a"}
        self.assertEqual(self.name_servers.asked, [("one:9876", RequestCode.GET_BROKER_MEMBER_GROUP, fields)])

    def test_nobody_counts_before_a_name_server_answered_and_that_is_said_once(self) -> None:
        self.join(SLAVE)
        lines = [self.look(), self.look()]
        self.assertEqual(self.copies(), [])
        said = "no name server reports the registered slaves: no copy of a slave counts until one does"
        self.assertEqual(lines, [[said], []])

    def test_sends_that_wait_go_when_a_slave_turns_out_to_be_registered(self) -> None:
        self.join(SLAVE)
        waiting = self.master.ha.replicated(10 * RECORD_BYTES)
        self.assertNoResult(waiting)
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.assertEqual(self.look(), [])
        self.master.ha.accept.acknowledged()
        self.assertTrue(self.successResultOf(waiting))

    def test_master_itself_is_no_slave(self) -> None:
        self.registered({0: f"{STRANGER}:10911"})
        self.look()
        self.join(STRANGER)
        self.assertEqual(self.copies(), [])

    def test_last_members_stay_where_no_name_server_answers(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        self.registered(None)
        self.assertEqual(self.look(), [])
        self.join(SLAVE)
        self.assertEqual(self.copies(), [10 * RECORD_BYTES])

    def test_second_name_server_answers_for_the_first(self) -> None:
        self.registered(None, {0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        self.join(SLAVE)
        self.assertEqual(self.copies(), [10 * RECORD_BYTES])

    def test_name_server_that_was_just_started_takes_nobodys_copy_away(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        self.join(SLAVE)
        for members in ({}, {0: f"{MASTER}:10911"}):
            self.registered(members)
            self.assertEqual(self.look(), [])
            self.assertEqual(self.copies(), [10 * RECORD_BYTES])

    def test_stranger_is_told_of_once_with_what_to_do(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.join(STRANGER)
        lines = [self.look(), self.look()]
        line = (
            "slave's copy does not count, the name servers know no slave of broker-a at its address:"
            f" slave={STRANGER}:40001. If it is a slave, set haSharedSecret at both sides or add its host to haAllowedSlaves; "
            "haCountRegisteredSlavesOnly=false counts every host"
        )
        self.assertEqual(lines, [[line], []])

    def test_status_calls_no_stranger_in_sync(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        for host in (STRANGER, SLAVE):
            self.join(host)
        info = self.master.ha.runtime_info()
        found = [(one.addr, one.in_sync) for one in info.ha_connection_info]
        self.assertEqual(
            (info.in_sync_slave_nums, found), (1, [(f"{STRANGER}:40001", False), (f"{SLAVE}:40001", True)])
        )

    def test_strangers_who_report_make_room_for_a_slave(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        strangers = [self.join(f"10.0.1.{number}") for number in range(64)]
        self.join(SLAVE)
        self.assertEqual([one.lost for one in strangers], [True] + [False] * 63)
        self.assertEqual(self.copies(), [10 * RECORD_BYTES])


class LimitTests(RegisteredSlavesCase):
    """An ASYNC_MASTER: no send waits for a copy, so each link counts, and strangers would cost it only time."""

    options = {"broker_role": "ASYNC_MASTER", "in_sync_replicas": 1}
    appended = 10 * 1024 * 1024

    def limits(self) -> dict[str, bool]:
        return {one.host: one.is_limited for one in self.master.ha.accept.connections}

    def sent_in_a_second(self, *slaves: SlaveByHand) -> list[int]:
        """Append 10 MiB at the begin of a whole second, and return what each slave is sent of it in that second.

        Seconds of the second link begin 1/64 s after those of the first.
        """
        self.network.clock.advance(2.02 - self.network.clock.seconds() % 1)
        before = [len(slave.received) for slave in slaves]
        self.master.put(160, bytes(64 * 1024))
        run(self.network, 0.96)
        return [len(slave.received) - was for slave, was in zip(slaves, before, strict=True)]

    def test_strangers_share_a_limit_and_a_registered_slave_has_none(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        first, second, slave = self.join(STRANGER), self.join("10.0.0.67"), self.join(SLAVE)
        self.assertEqual(set(self.limits().values()), {False}, "nobody has told who is a slave")
        self.look()
        self.assertEqual(self.limits(), {STRANGER: True, "10.0.0.67": True, SLAVE: False})
        for_first, for_second, for_slave = self.sent_in_a_second(first, second, slave)
        self.assertGreater(for_slave, self.appended)
        for sent in (for_first, for_second):
            self.assertGreater(sent, STRANGERS_BYTES // 4)
            self.assertLessEqual(sent, STRANGERS_BYTES // 2)

    def test_limited_links_do_not_all_go_on_at_once(self) -> None:
        """48 links that went on together held up a broker under siege for up to 90 ms, each second."""
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        for number in range(48):
            self.join(f"10.0.1.{number}")
        self.sent_in_a_second()
        due = [one.monitor.next_second() for one in self.master.ha.accept.connections]
        self.assertEqual([round(64 * (one - due[0]) % 64) for one in due], list(range(48)))

    def test_a_slave_that_registers_later_is_looked_for_and_has_no_limit_then(self) -> None:
        self.registered({0: f"{MASTER}:10911"})
        self.look()
        slave = self.join(SLAVE)
        self.assertEqual(self.limits(), {SLAVE: True})
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.successResultOf(self.slaves.look_at_strangers())
        self.assertEqual(self.limits(), {SLAVE: False})
        asked = len(self.name_servers.asked)
        self.successResultOf(self.slaves.look_at_strangers())
        self.assertEqual(len(self.name_servers.asked), asked, "nothing is limited, so nobody is asked")
        self.assertGreater(self.sent_in_a_second(slave)[0], self.appended)

    def test_a_link_that_stays_limited_is_told_of_once_with_what_to_do(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.join(STRANGER)
        self.join(SLAVE)
        lines = [self.look() for _ in range(4)]
        line = (
            "slave's link is slow, hosts without a registered slave of broker-a share 2097152 bytes a second: "
            f"slave={STRANGER}:40001. If it is a slave, set haSharedSecret at both sides or add its host to haAllowedSlaves; "
            "haCountRegisteredSlavesOnly=false limits no host"
        )
        self.assertEqual(lines, [[], [], [line], []])

    def test_the_part_of_a_stranger_that_leaves_is_the_others(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{SLAVE}:10911"})
        self.look()
        first, second = self.join(STRANGER), self.join("10.0.0.67")
        self.assertLessEqual(self.sent_in_a_second(first)[0], STRANGERS_BYTES // 2)
        second.transport.abortConnection()
        run(self.network, 3.0)
        self.assertGreater(self.sent_in_a_second(first)[0], STRANGERS_BYTES // 2)


class EveryHostTests(RegisteredSlavesCase):
    options = {"broker_role": "ASYNC_MASTER", "in_sync_replicas": 1, "ha_count_registered_slaves_only": False}

    def test_no_link_is_limited_where_every_host_is_trusted(self) -> None:
        self.registered({0: f"{MASTER}:10911"})
        self.look()
        self.join(STRANGER)
        self.assertEqual([one.is_limited for one in self.master.ha.accept.connections], [False])


class AddressTests(RegisteredSlavesCase):
    def assertCounts(self, registered: str, host: str) -> None:
        self.registered({0: f"{MASTER}:10911", 1: registered})
        self.look()
        self.join(host)
        self.assertEqual(self.copies(), [10 * RECORD_BYTES])

    def test_slave_on_the_masters_host_may_come_by_loopback(self) -> None:
        self.assertCounts(f"{MASTER}:10921", "127.0.0.1")

    def test_slave_that_registers_debians_address_of_its_name_may_come_by_loopback(self) -> None:
        self.assertCounts("127.0.1.1:10921", "127.0.0.1")

    def test_other_loopback_addresses_are_not_the_masters_host(self) -> None:
        self.registered({0: f"{MASTER}:10911", 1: f"{MASTER}:10921"})
        self.look()
        self.join("127.0.1.3")
        self.assertEqual(self.copies(), [])

    def test_slave_that_registers_loopback_is_on_the_masters_host(self) -> None:
        self.assertCounts("127.0.0.1:10921", MASTER)

    def test_ipv4_seen_through_ipv6_is_the_same(self) -> None:
        self.assertCounts(f"{SLAVE}:10911", f"::ffff:{SLAVE}")

    def test_bracketed_ipv6_is_the_same(self) -> None:
        self.assertCounts("[fd00::2]:10911", "fd00::2")

    def test_name_counts_by_the_addresses_behind_it(self) -> None:
        self.assertCounts("localhost:10921", "127.0.0.1")

    def test_unknown_name_has_no_addresses(self) -> None:
        self.assertEqual(addresses_of("a name with blanks.invalid"), set())
        self.assertEqual(addresses_of("." * 300), set())


class SecretTests(RegisteredSlavesCase):
    """Settings that identify slaves without name servers, or brokers without name servers: all served slaves count."""

    def assertAllCount(self, **options: Any) -> None:
        settings = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "namesrv_addr": "one:9876"}
        network = virtual_network()
        master = Replica(network, MASTER, **{**settings, **options})
        slave = join_by_hand(network, STRANGER, MASTER)
        slave.report(0)
        run(network, 0.1)
        self.assertEqual(
            (master.options.counts_registered_slaves, master.ha.accept.acknowledged_offsets()), (False, [0])
        )

    def test_allowed_hosts_count(self) -> None:
        self.assertAllCount(ha_allowed_slaves=STRANGER)

    def test_everybody_counts_where_that_is_chosen(self) -> None:
        self.assertAllCount(ha_count_registered_slaves_only=False)

    def test_everybody_counts_where_no_name_server_is_named(self) -> None:
        self.assertAllCount(namesrv_addr="")

    def test_one_copy_asks_for_nobody(self) -> None:
        self.assertAllCount(in_sync_replicas=1)

    def test_secret_needs_no_registration(self) -> None:
        options = attrs.evolve(self.master.options, ha_shared_secret="a long word")
        self.assertEqual(
            (self.master.options.counts_registered_slaves, options.counts_registered_slaves), (True, False)
        )
