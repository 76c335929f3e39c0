"""When a slave acts for its master, what it serves then, and how the master's return ends that."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory
from tests.twisted_mq.broker.acting.online import SELF, SLAVE_AT, Group
from tests.twisted_mq.broker.ha.test_replication import MASTER, TABLES, ReplicationCase
from tests.twisted_mq.broker.ha.test_slave_broker import SLAVE, pull_fields, replicated
from twisted_mq.broker.acting.heartbeat import Heartbeat
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.protocol.bodies import (
    DataVersion,
    decode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand


class ActingTests(ReplicationCase):
    options = {"enable_slave_acting_master": True}

    def setUp(self) -> None:
        super().setUp()
        self.said: list[bool] = []
        self.replication.on_acting.append(self.said.append)

    def acts_with(self, *members: dict[int, str] | None) -> bool:
        self.answers_of(*members)
        self.run_for(1)
        return self.broker.controller.acts_as_master

    def answers_of(self, *members: dict[int, str] | None) -> None:
        """Have each name server know its own members; one without any is dead."""
        servers = self.registration.name_servers = [f"{number}:9876" for number in range(len(members))]
        self.remoting.dead = {server for server, known in zip(servers, members, strict=True) if known is None}
        known_to = dict(zip(servers, members, strict=True))
        plain = type(self.remoting).invoke

        def invoke(address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
            self.remoting.members = known_to.get(address)
            return plain(self.remoting, address, command, seconds)

        self.replication._group = MemberGroup(self.broker.options, servers, invoke)

    def test_slave_with_the_lowest_id_acts_while_no_name_server_knows_the_master(self) -> None:
        cases: list[tuple[bool, list[dict[int, str] | None]]] = [
            (False, [{0: MASTER, 1: SELF}]),
            (True, [{1: SELF}]),
            (True, [{1: SELF, 2: SLAVE_AT}]),
            (True, [None, {1: SELF}]),
            (True, [None, None]),  # nobody answers: nothing changes
            (False, [{1: SELF}, {0: MASTER, 1: SELF}]),
            (False, [None, None]),
            (False, [{1: "127.0.0.9:1"}]),  # another broker has this id
            (False, [{2: SLAVE_AT}]),
        ]
        self.assertEqual([self.acts_with(*members) for _, members in cases], [wanted for wanted, _ in cases])
        self.assertEqual(self.said, [True, False])

    def test_offsets_of_an_acting_slave_have_a_newer_version_than_its_master_gave_them(self) -> None:
        """Apache's returning master takes the table only where its version is not behind its own."""
        before = self.broker.controller.offsets.data_version
        self.acts_with({1: SELF})
        after = self.broker.controller.offsets.data_version
        self.assertEqual((after.state_version, after.counter), (before.state_version, before.counter + 1))

    def test_notice_of_a_name_server_has_them_asked_at_once_and_nothing_in_it_is_believed(self) -> None:
        self.answers_of({0: MASTER, 1: SELF})
        self.run_for(1)
        peer = self.broker.connect()
        told = {"minBrokerId": "1", "brokerName": "broker-cap", "minBrokerAddr": SELF, "offlineBrokerAddr": MASTER}
        self.assertEqual(peer.ask(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, told).code, ResponseCode.SUCCESS)
        self.assertFalse(self.broker.controller.acts_as_master)
        self.answers_of({1: SELF})
        peer.ask(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, told)
        self.assertTrue(self.broker.controller.acts_as_master)

    def test_masters_tables_are_copied_once_what_the_slave_noted_is_on_disk(self) -> None:
        """Both are in the same files."""
        noted: defer.Deferred[None] = defer.Deferred()
        self.assertTrue(self.acts_with({1: SELF}))
        self.registration.answered({"masterAddr": MASTER})
        self.replication._sync_what_is_due()
        self.assertEqual(self.remoting.codes(MASTER), [])
        self.replication.on_acting.append(lambda acts: noted)
        self.assertFalse(self.acts_with({0: MASTER, 1: SELF}))
        self.replication._sync_what_is_due()
        self.assertEqual(self.remoting.codes(MASTER), [])
        noted.callback(None)
        self.assertEqual(self.remoting.codes(MASTER)[: len(TABLES)], TABLES)

    def test_master_that_names_itself_is_followed_where_none_is_known_and_it_is_there(self) -> None:
        """Apache's master waits for its slaves before it registers."""
        peer = self.broker.connect()  # from 127.0.0.1
        client = self.replication.client
        for address, known in (
            ("10.9.9.9:10912", None),
            ("127.0.0.1:10912", "127.0.0.1:10912"),
            ("127.0.0.1:5", "127.0.0.1:10912"),
        ):
            peer.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, {"masterHaAddress": address, "masterAddress": MASTER})
            self.assertEqual(client.master_ha_address, known)
        client.stop()


class WithoutTheModeTests(ReplicationCase):
    def test_slave_does_not_act(self) -> None:
        self.remoting.members = {1: SELF}
        self.run_for(2)
        self.assertFalse(self.broker.controller.acts_as_master)
        self.assertEqual(self.broker.controller.min_broker_id, 1)


def test_acting_slave_serves_pulls_and_refuses_what_writes() -> None:
    broker = BrokerInMemory(**SLAVE)
    replicated(broker, 3)
    peer = broker.connect()
    assert peer.ask(RequestCode.PULL_MESSAGE, pull_fields()).code == ResponseCode.SYSTEM_BUSY
    broker.controller.acts_as_master = True
    assert peer.ask(RequestCode.PULL_MESSAGE, pull_fields()).ext_fields["nextBeginOffset"] == "3"
    for code in (RequestCode.SEND_MESSAGE_V2, RequestCode.POP_MESSAGE, RequestCode.ACK_MESSAGE):
        assert peer.ask(code, {}).code == ResponseCode.SYSTEM_BUSY


class HeartbeatTests(SynchronousTestCase):
    def beat(self, registered: bool = True, **options: Any) -> list[tuple[str, RemotingCommand]]:
        broker, group = BrokerInMemory(enable_slave_acting_master=True, **options), Group()
        servers = ["one:9876", "dead:9876"]
        heartbeat = Heartbeat(
            broker.options, SELF, servers, group.invoke, lambda: DataVersion(0, 7, 3), lambda: registered
        )
        self.successResultOf(heartbeat.beat())
        return group.asked

    def test_heartbeat_is_a_query_that_old_name_servers_know(self) -> None:
        (first, asked), (second, _) = self.beat()
        self.assertEqual((first, second, asked.code), ("one:9876", "dead:9876", RequestCode.QUERY_DATA_VERSION))
        self.assertEqual(decode_body(DataVersion, asked.body), DataVersion(0, 7, 3))

    def test_heartbeat_of_its_own_code_where_no_old_name_server_is_there(self) -> None:
        asked = self.beat(compatible_with_old_name_srv=False)[0][1]
        self.assertEqual((asked.code, asked.ext_fields["brokerAddr"]), (RequestCode.BROKER_HEARTBEAT, SELF))

    def test_broker_that_is_not_registered_does_not_beat(self) -> None:
        self.assertEqual(self.beat(registered=False), [])
