"""A slave's schedule: when it asks the name servers, when it copies tables, what it learns from registrations."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet import defer
from twisted.internet.task import LoopingCall
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory
from twisted_mq.broker.ha.replication import Replication
from twisted_mq.protocol.bodies import (
    BrokerMemberGroup,
    GetBrokerMemberGroupResponseBody,
    TimerMetricsSerializeWrapper,
    TopicConfigAndMappingSerializeWrapper,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.testing.virtual_network import VirtualNetwork

MASTER = "127.0.0.9:30911"
TABLES = [21, 43, 45, 201, 402, 61]


@attrs.define(eq=False)
class Remoting:
    """Answers what a slave asks: name servers know `members`, masters have empty tables and a timer at work."""

    members: dict[int, str] | None = attrs.field(factory=dict)
    asked: list[tuple[str, int]] = attrs.field(factory=list)
    dead: set[str] = attrs.field(factory=set)
    store: Any = None
    """The master's log."""

    def invoke(self, address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        self.asked.append((address, command.code))
        if address in self.dead:
            return defer.fail(RemotingConnectError(address))
        if command.code == RequestCode.VIEW_MESSAGE_BY_ID:
            return defer.succeed(command.answer(body=self.store.look_message(int(command.ext_fields["offset"]))))
        return defer.succeed(command.answer(body=self._body(command.code)))

    def _body(self, code: int) -> bytes:
        if code == RequestCode.GET_BROKER_MEMBER_GROUP:
            group = BrokerMemberGroup("CapCluster", "broker-cap", self.members) if self.members is not None else None
            return encode_body(GetBrokerMemberGroupResponseBody(group))
        if code == RequestCode.GET_TIMER_CHECK_POINT:
            return TimerCheckpoint(1, 2, 3, 4, 5, 6, 7).encode()
        if code == RequestCode.GET_TIMER_METRICS:
            return encode_body(TimerMetricsSerializeWrapper())
        if code == RequestCode.GET_ALL_TOPIC_CONFIG:
            return encode_body(TopicConfigAndMappingSerializeWrapper())
        return b"{}"

    def codes(self, address: str) -> list[int]:
        return [code for to, code in self.asked if to == address]


@attrs.define(eq=False)
class Registration:
    name_servers: list[str]
    registered: int = 0
    on_answer: list[Callable[[dict[str, str]], None]] = attrs.field(factory=list)
    answers: dict[str, str] | None = None

    def answered(self, fields: dict[str, str]) -> None:
        for tell in self.on_answer:
            tell(fields)

    def register(self) -> defer.Deferred[list[bool]]:
        self.registered += 1
        if self.answers is not None:
            self.answered(self.answers)
        return defer.succeed([True])


class ReplicationCase(SynchronousTestCase):
    options: dict[str, Any] = {}

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="mq-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.broker = BrokerInMemory(
            broker_role="SLAVE", broker_id=1, **{"store_path_root_dir": self.folder} | self.options
        )
        self.remoting = Remoting()
        self.registration = Registration(["one:9876", "two:9876"])
        host = VirtualNetwork(self.broker.clock).host("slave")
        self.replication = Replication(self.broker.controller, host, self.remoting, self.registration)
        self.replication.start(self.every)

    def every(self, seconds: float, work: Any) -> None:
        loop = LoopingCall(work)
        loop.clock = self.broker.clock
        loop.start(seconds, now=False)
        self.addCleanup(loop.stop)

    def run_for(self, seconds: int) -> None:
        for _ in range(seconds):
            self.broker.clock.advance(1)


class ScheduleTests(ReplicationCase):
    def test_nothing_is_copied_before_the_master_is_known(self) -> None:
        self.run_for(10)
        self.assertEqual(self.remoting.codes(MASTER), [])

    def test_tables_come_at_once_and_each_minute_the_checkpoint_each_turn(self) -> None:
        self.registration.answered({"masterAddr": MASTER, "haServerAddr": "127.0.0.9:30912"})
        self.remoting.members = {0: MASTER, 1: "self"}
        self.run_for(3)
        self.assertEqual(self.remoting.codes(MASTER), [*TABLES, 60])
        self.run_for(57)
        self.assertEqual(self.remoting.codes(MASTER), [*TABLES, *[60] * 20])
        self.run_for(3)
        self.assertEqual(self.remoting.codes(MASTER), [*TABLES, *[60] * 20, *TABLES, 60])

    def test_tables_come_at_each_turn_while_a_topic_is_lacking(self) -> None:
        """The coordinator tells a slave of an ordered topic at once; it could not serve its master's messages before."""
        self.registration.answered({"masterAddr": MASTER, "haServerAddr": "127.0.0.9:30912"})
        self.remoting.members = {0: MASTER, 1: "self"}
        self.run_for(3)
        self.replication.lacks_topic = lambda: len(self.remoting.codes(MASTER)) < 2 * len(TABLES)
        self.run_for(6)
        self.assertEqual(self.remoting.codes(MASTER), [*TABLES, 60, *TABLES, 60, 60])

    def test_offsets_committed_here_are_handed_back_at_the_next_turn(self) -> None:
        self.registration.answered({"masterAddr": MASTER})
        self.remoting.members = {0: MASTER, 1: "self"}
        self.run_for(3)
        self.remoting.asked.clear()
        self.broker.store.put_message(InnerMessage("SELF_TEST_TOPIC", 0, b"", b"", {}, 0))
        self.broker.controller.dispatch()
        self.remoting.store = self.broker.store
        self.broker.controller.offsets.commit("G", "SELF_TEST_TOPIC", 0, 1)
        self.run_for(6)
        self.assertEqual(self.remoting.codes(MASTER), [43, 33, 15, 60, 60])

    def test_checkpoint_is_kept_without_what_is_about_the_masters_own_files(self) -> None:
        self.registration.answered({"masterAddr": MASTER})
        self.remoting.members = {0: MASTER, 1: "self"}
        self.run_for(3)
        kept = TimerCheckpoint.load(f"{self.folder}/config/timercheck")
        self.assertEqual(kept, TimerCheckpoint(1, 0, 0, 4, 5, 6, 7))

    def test_lowest_id_follows_the_name_server(self) -> None:
        self.registration.answered({"masterAddr": MASTER})
        for members, lowest in (({0: MASTER, 1: "self"}, 0), ({1: "self"}, 1), ({}, 1), (None, 1)):
            self.remoting.members = members
            self.run_for(1)
            self.assertEqual(self.broker.controller.min_broker_id, lowest)

    def test_lost_master_ends_the_copying_and_a_new_one_is_registered_with(self) -> None:
        self.registration.answered({"masterAddr": MASTER})
        self.remoting.members = {1: "self"}
        self.run_for(6)
        self.assertEqual(self.remoting.codes(MASTER), [])
        self.remoting.members = {0: MASTER, 1: "self"}
        self.run_for(1)
        self.assertEqual(self.registration.registered, 1)
        self.registration.answered({"masterAddr": MASTER})
        self.run_for(3)
        self.assertEqual(self.remoting.codes(MASTER)[:6], TABLES)

    def test_master_that_returned_is_synchronized_with_as_soon_as_it_is_known(self) -> None:
        """Before consumers ask it for offsets that only this slave has."""
        self.remoting.members = {0: MASTER, 1: "self"}
        self.registration.answers = {"masterAddr": MASTER}
        self.run_for(1)
        self.assertEqual(self.remoting.codes(MASTER), [*TABLES, 60])

    def test_second_name_server_is_asked_where_the_first_is_dead(self) -> None:
        self.remoting.dead = {"one:9876"}
        self.remoting.members = {1: "self"}
        self.run_for(1)
        self.assertEqual([address for address, _ in self.remoting.asked], ["one:9876", "two:9876"])
        self.assertEqual(self.broker.controller.min_broker_id, 1)


class AddressTests(ReplicationCase):
    def test_ha_address_comes_from_the_registration(self) -> None:
        self.registration.answered({"haServerAddr": "127.0.0.9:1", "masterAddr": MASTER})
        self.assertEqual(self.replication.client.master_ha_address, "127.0.0.9:1")
        self.registration.answered({})
        self.assertEqual(self.replication.client.master_ha_address, "127.0.0.9:1")
        self.assertIsNone(self.replication.synchronize.master_address)
        self.replication.client.stop()


class ConfiguredAddressTests(ReplicationCase):
    options = {"ha_master_address": "127.0.0.9:5"}

    def test_configured_address_stays(self) -> None:
        """5.3.3 ignores it by a defect."""
        self.registration.answered({"haServerAddr": "127.0.0.9:1", "masterAddr": MASTER})
        self.assertEqual(self.replication.client.master_ha_address, "127.0.0.9:5")
        self.replication.client.stop()
