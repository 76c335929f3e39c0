"""A slave's copies of its master's tables, between two brokers in memory and against Apache's recorded answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory, MemoryTable, anywhere
from tests.support.captures import frame_index, frames
from twisted_mq.broker.ha.client import Following
from twisted_mq.broker.ha.slave_synchronize import SlaveSynchronize
from twisted_mq.protocol.bodies import DataVersion, SubscriptionGroupConfig, TopicConfig
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.names.system_topics import HALF_TOPIC, OP_TOPIC, REVIVE_GROUP, TRANSACTION_GROUP
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.storage.interfaces import InnerMessage, PutStatus

MASTER = "127.0.0.9:30911"
DELAYS_AND_END = (RequestCode.GET_ALL_DELAY_OFFSET, RequestCode.GET_BROKER_RUNTIME_INFO)


def put(broker: BrokerInMemory, body: bytes) -> None:
    """Into its log alone."""
    assert broker.store.put_message(InnerMessage("T", 0, body, b"", {}, 0)).status is PutStatus.PUT_OK


class SynchronizeCase(SynchronousTestCase):
    """`asked` are the codes the slave asked for; `down` lets its calls fail; `following` is its connection to the master,
    another one from the request `changes_at` on.
    """

    def setUp(self) -> None:
        self.following: Following | None = Following("first connection", 1)
        self.slave_ends: Callable[[str, int], int] = anywhere
        self.master = BrokerInMemory(queue_end=anywhere)
        self.slave = BrokerInMemory(
            broker_role="SLAVE", broker_id=1, queue_end=lambda topic, queue_id: self.slave_ends(topic, queue_id)
        )
        self.asked: list[int] = []
        self.down = False
        self.down_from: int | None = None
        self.changes_at: int | None = None
        self.delays = MemoryTable()
        self.metrics: list[Any] = []
        self.checkpoints: list[bytes] = []
        self.synchronize = SlaveSynchronize(
            self.slave.controller, self.invoke, self.delays, self.metrics.append, self.checkpoints.append,
            lambda: self.following,
        )  # fmt: skip
        self.synchronize.set_master_address(MASTER)

    def invoke(self, address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        assert address == MASTER
        self.asked.append(command.code)
        if self.down or command.code == self.down_from:
            return defer.fail(RemotingConnectError(address))
        if command.code == self.changes_at:
            self.following = Following("second connection", 1)
        peer = self.master.connect()
        peer.send(command)
        return defer.succeed(peer.received()[0])

    def sync(self) -> bool:
        return bool(self.successResultOf(defer.ensureDeferred(self.synchronize.sync_all())))

    def sync_offsets(self) -> bool:
        return bool(self.successResultOf(defer.ensureDeferred(self.synchronize.sync_offsets())))


class CopyTests(SynchronizeCase):
    def test_tables_are_asked_for_in_apaches_order(self) -> None:
        self.assertTrue(self.sync())
        self.assertEqual(self.asked, [21, 43, 45, 201, 402, 61])

    def test_topics_and_groups_are_the_masters_with_its_versions(self) -> None:
        master, slave = self.master.controller, self.slave.controller
        master.topics.update([TopicConfig(topic_name="Orders", read_queue_nums=3, write_queue_nums=3)])
        master.groups.update(SubscriptionGroupConfig(group_name="GroupA"))
        self.slave.clock.advance(1)
        slave.topics.update([TopicConfig(topic_name="OnlyHere")])
        slave.groups.update(SubscriptionGroupConfig(group_name="OnlyHere"))
        self.assertTrue(self.sync())
        self.assertEqual(slave.topics.topics, master.topics.topics)
        self.assertEqual(slave.topics.data_version, master.topics.data_version)
        self.assertEqual(slave.groups.groups, master.groups.groups)
        self.assertEqual(slave.groups.data_version, master.groups.data_version)

    def test_same_version_changes_nothing(self) -> None:
        self.sync()
        saved = {name: self.slave.tables[name].saved for name in ("topics", "groups")}
        self.sync()
        self.assertEqual({name: self.slave.tables[name].saved for name in ("topics", "groups")}, saved)

    def hear(self) -> None:
        """The master sends something."""
        assert self.following is not None
        self.following = Following(self.following.link, self.following.taken + 1)
        self.synchronize.settle_progress()

    def test_delays_and_modes_are_copied(self) -> None:
        self.master.controller.waiting.schedule.offsets = {1: 5, 2: 6}
        self.master.controller.tables.request_modes.modes = {"Orders": {}}
        self.sync()
        self.hear()
        self.assertEqual((self.delays.offsets, self.delays.saved), ({1: 5, 2: 6}, 1))
        self.assertEqual(self.delays.log_offset, self.slave.store.max_physical_offset())
        self.assertEqual(self.slave.controller.tables.request_modes.modes, {"Orders": {}})
        self.assertEqual(len(self.metrics), 1)

    def deliver(self, offset: int) -> None:
        put(self.master, b"copy")
        self.master.controller.waiting.schedule.offsets = {1: offset}

    def test_delays_wait_until_this_log_has_what_the_master_delivered(self) -> None:
        """A store whose table is ahead of its log would never deliver what lies between."""
        self.deliver(1)
        self.assertTrue(self.sync())
        self.hear()
        self.assertEqual((self.delays.offsets, self.delays.saved), ({}, 0))
        self.deliver(2)
        self.assertTrue(self.sync())
        self.assertEqual([self.asked.count(code) for code in DELAYS_AND_END], [1, 1])
        put(self.slave, b"copy")
        self.synchronize.settle_progress()
        self.assertEqual((self.delays.offsets, self.delays.log_offset), ({1: 1}, 0))

    def test_delays_wait_until_the_master_goes_on_over_the_same_connection(self) -> None:
        """The master may have lost its log's end; this log may be as long, without the messages delivered since."""
        self.deliver(1)
        put(self.slave, b"copy")
        self.assertTrue(self.sync())
        self.synchronize.settle_progress()
        self.assertEqual(self.delays.offsets, {})
        self.following = Following("second connection", 9)
        self.hear()
        self.assertEqual((self.delays.offsets, self.delays.saved), ({}, 0))
        self.assertTrue(self.sync())
        self.hear()
        self.assertEqual(self.delays.offsets, {1: 1})
        self.assertEqual([self.asked.count(code) for code in DELAYS_AND_END], [2, 2])

    def test_delays_of_a_master_that_this_log_does_not_follow_are_let_go_of(self) -> None:
        self.deliver(1)
        put(self.slave, b"what the master lost")
        self.following = None
        self.assertTrue(self.sync())
        self.following = Following("first connection", 1)
        self.hear()
        self.assertEqual(self.delays.offsets, {})

    def test_delays_of_a_master_whose_logs_end_is_not_known_are_asked_for_again(self) -> None:
        self.deliver(1)
        put(self.slave, b"copy")
        self.down_from = RequestCode.GET_BROKER_RUNTIME_INFO
        self.assertFalse(self.sync())
        self.hear()
        self.assertEqual(self.delays.offsets, {})
        self.down_from = None
        self.assertTrue(self.sync())
        self.hear()
        self.assertEqual(self.delays.offsets, {1: 1})

    def pass_halves(self, number: int) -> None:
        """The master decides so many half messages, and revives so many popped ones."""
        put(self.master, b"committed")
        for topic, group in ((HALF_TOPIC, TRANSACTION_GROUP), (OP_TOPIC, TRANSACTION_GROUP), ("R", REVIVE_GROUP)):
            self.master.controller.offsets.commit(group, topic, 0, number)

    def passed(self) -> list[int | None]:
        query = self.slave.controller.offsets.query
        return [
            query(TRANSACTION_GROUP, HALF_TOPIC, 0), query(TRANSACTION_GROUP, OP_TOPIC, 0), query(REVIVE_GROUP, "R", 0)
        ]  # fmt: skip

    def test_offsets_of_the_brokers_own_groups_wait_until_this_log_has_what_they_rest_on(self) -> None:
        """A store without the committed copy, and with the offset, would ask for no decision again, and deliver nothing."""
        self.pass_halves(2)
        self.master.controller.offsets.commit("G", "T", 0, 9)
        self.assertTrue(self.sync())
        self.hear()
        self.assertEqual((self.passed(), self.slave.controller.offsets.query("G", "T", 0)), ([None] * 3, 9))
        put(self.slave, b"committed")
        self.synchronize.settle_progress()
        self.assertEqual((self.passed(), self.synchronize.has_own_offsets), ([2] * 3, False))
        self.pass_halves(3)
        self.assertTrue(self.sync_offsets())
        self.assertEqual(self.passed(), [2] * 3)

    def test_own_groups_offsets_of_a_master_that_was_replaced_meanwhile_are_let_go_of(self) -> None:
        """Its successor may have lost what they rest on, and says where its own log ends."""
        self.pass_halves(2)
        self.master.controller.waiting.schedule.offsets = {1: 5}
        put(self.slave, b"other bytes")
        self.changes_at = RequestCode.GET_ALL_DELAY_OFFSET
        self.assertTrue(self.sync())
        self.hear()
        self.assertEqual((self.passed(), self.delays.offsets), ([None] * 3, {1: 5}))
        self.changes_at = None
        self.assertTrue(self.sync())
        self.hear()
        self.assertEqual(self.passed(), [2] * 3)

    def test_long_tables_are_read_in_a_thread(self) -> None:
        """Offsets have bare numbers as keys, and are read at a MiB a second."""
        read: list[int] = []

        def in_thread(function: Callable[[bytes], Any], body: bytes) -> defer.Deferred[Any]:
            read.append(len(body))
            return defer.succeed(function(body))

        self.slave.controller.in_thread = in_thread  # type: ignore[assignment]
        self.assertTrue(self.sync())
        self.assertEqual((len(read), min(read) > 0), (6, True))

    def test_timer_checkpoint_is_copied(self) -> None:
        self.assertTrue(self.successResultOf(defer.ensureDeferred(self.synchronize.sync_timer_checkpoint())))
        self.assertEqual([len(one) for one in self.checkpoints], [56])

    def test_one_table_that_fails_does_not_hold_up_the_others(self) -> None:
        del self.master.processors[int(RequestCode.GET_ALL_TOPIC_CONFIG)]
        self.master.controller.offsets.commit("G", "T", 0, 9)
        self.assertFalse(self.sync())
        self.assertEqual(self.slave.controller.offsets.query("G", "T", 0), 9)

    def test_lost_master_is_tried_again(self) -> None:
        self.down = True
        self.assertFalse(self.sync())
        self.down = False
        self.assertTrue(self.sync())

    def test_nothing_happens_without_a_master_or_with_oneself(self) -> None:
        for address in (None, self.slave.controller.address):
            self.synchronize.set_master_address(address)
            self.assertFalse(self.sync())
        self.assertEqual(self.asked, [])


def append(broker: BrokerInMemory, topic: str, queue_id: int, count: int, body: bytes = b"body") -> None:
    for _ in range(count):
        broker.store.put_message(InnerMessage(topic, queue_id, body, b"", {}, 0))
    broker.controller.dispatch()


class OffsetTests(SynchronizeCase):
    """Both logs have 25 messages in each queue whose offsets are handed back."""

    def setUp(self) -> None:
        super().setUp()
        self.fill(self.slave)
        self.fill(self.master)

    def fill(self, broker: BrokerInMemory) -> None:
        for topic in ("SELF_TEST_TOPIC", "NoSuchTopic"):
            append(broker, topic, 0, 25)
        for queue_id in range(3):
            append(broker, "BenchmarkTest", queue_id, 25)

    def test_offset_that_counts_messages_which_the_master_lost_is_not_handed_back(self) -> None:
        """The master has other messages there by now, which the group would skip."""
        self.sync()
        append(self.slave, "SELF_TEST_TOPIC", 0, 5, b"lost")
        append(self.master, "SELF_TEST_TOPIC", 0, 8, b"new")
        self.slave.controller.offsets.commit("G", "BenchmarkTest", 1, 7)
        self.slave.controller.offsets.commit("G", "SELF_TEST_TOPIC", 0, 30)
        for _ in range(2):
            self.sync_offsets()
            self.assertTrue(self.synchronize.has_own_offsets)
        offsets = self.master.controller.offsets
        self.assertEqual(offsets.query("G", "SELF_TEST_TOPIC", 0), None)
        self.assertEqual(offsets.query("G", "BenchmarkTest", 1), 7)

    def test_nothing_is_handed_back_to_a_master_that_shows_no_message(self) -> None:
        self.sync()
        self.slave.controller.offsets.commit("G", "BenchmarkTest", 1, 7)
        self.down_from = int(RequestCode.VIEW_MESSAGE_BY_ID)
        self.sync_offsets()
        self.assertEqual(self.master.controller.offsets.query("G", "BenchmarkTest", 1), None)
        self.down_from = None
        self.sync_offsets()
        self.assertEqual(self.master.controller.offsets.query("G", "BenchmarkTest", 1), 7)

    def test_masters_offsets_replace_those_of_the_slave(self) -> None:
        self.master.controller.offsets.commit("G", "T", 0, 10)
        self.sync()
        self.master.controller.offsets.commit("G", "T", 0, 4)
        self.sync()
        self.assertEqual(self.slave.controller.offsets.query("G", "T", 0), 4)

    def test_offset_of_what_this_log_has_not_got_yet_is_taken_as_far_as_it_has_come(self) -> None:
        """A store that takes the master's place must not say that messages are consumed which come into its log later."""
        self.slave_ends = lambda topic, queue_id: 7
        self.master.controller.offsets.commit("G", "T", 0, 10)
        self.master.controller.offsets.commit("G", "T", 1, 6)
        self.sync()
        offsets = self.slave.controller.offsets
        self.assertEqual((offsets.offsets, self.synchronize.wants_offsets), ({"T@G": {0: 7, 1: 6}}, True))
        self.slave_ends = lambda topic, queue_id: 12
        self.sync_offsets()
        self.assertEqual((offsets.offsets, self.synchronize.wants_offsets), ({"T@G": {0: 10, 1: 6}}, False))

    def test_offsets_committed_here_are_handed_back_once(self) -> None:
        """The group continued at the slave during the master's absence, and must not start again at the master."""
        for topic in ("SELF_TEST_TOPIC", "BenchmarkTest"):
            self.master.controller.offsets.commit("G", topic, 0, 10)
        self.sync()
        self.slave.controller.offsets.commit("G", "SELF_TEST_TOPIC", 0, 25)
        self.slave.controller.offsets.commit("G", "BenchmarkTest", 0, 5)
        self.slave.controller.offsets.commit("G", "BenchmarkTest", 1, 7)
        self.asked.clear()
        self.sync()
        offsets = self.master.controller.offsets
        self.assertEqual(offsets.query("G", "SELF_TEST_TOPIC", 0), 25)
        self.assertEqual((offsets.query("G", "BenchmarkTest", 0), offsets.query("G", "BenchmarkTest", 1)), (10, 7))
        self.assertEqual(self.slave.controller.offsets.query("G", "BenchmarkTest", 0), 10)
        self.assertEqual(self.asked.count(int(RequestCode.UPDATE_CONSUMER_OFFSET)), 2)
        offsets.commit("G", "SELF_TEST_TOPIC", 0, 3)
        self.sync()
        self.assertEqual(offsets.query("G", "SELF_TEST_TOPIC", 0), 3)

    def test_group_that_came_into_being_here_is_made_at_the_master(self) -> None:
        self.master = BrokerInMemory(auto_create_subscription_group=False, queue_end=anywhere)
        self.fill(self.master)
        self.sync()
        self.slave.controller.groups.update(SubscriptionGroupConfig(group_name="New", retry_max_times=3))
        self.slave.controller.offsets.commit("New", "SELF_TEST_TOPIC", 0, 25)
        self.assertTrue(self.synchronize.has_own_offsets)
        self.asked.clear()
        self.sync_offsets()
        self.assertEqual(self.asked, [43, 33, 15, 200, 15])
        self.assertEqual(self.master.controller.offsets.query("New", "SELF_TEST_TOPIC", 0), 25)
        self.assertEqual(self.master.controller.groups.find("New").retry_max_times, 3)
        self.assertFalse(self.synchronize.has_own_offsets)

    def test_what_was_not_handed_back_is_tried_again(self) -> None:
        self.sync()
        self.slave.controller.offsets.commit("G", "NoSuchTopic", 0, 25)
        for _ in range(2):
            self.sync_offsets()
            self.assertTrue(self.synchronize.has_own_offsets)
        self.master.controller.topics.update([TopicConfig(topic_name="NoSuchTopic")])
        self.sync_offsets()
        self.assertFalse(self.synchronize.has_own_offsets)
        self.assertEqual(self.master.controller.offsets.query("G", "NoSuchTopic", 0), 25)

    def test_master_that_goes_away_meanwhile_is_handed_back_to_later(self) -> None:
        self.sync()
        self.slave.controller.offsets.commit("G", "SELF_TEST_TOPIC", 0, 25)
        self.down_from = int(RequestCode.UPDATE_CONSUMER_OFFSET)
        self.sync_offsets()
        self.assertTrue(self.synchronize.has_own_offsets)
        self.down_from = None
        self.sync_offsets()
        self.assertEqual(self.master.controller.offsets.query("G", "SELF_TEST_TOPIC", 0), 25)

    def test_master_that_does_not_answer_is_not_asked_for_each_offset(self) -> None:
        """Each wait lasts three seconds, and the other tables wait too."""
        self.sync()
        for queue_id in range(3):
            self.slave.controller.offsets.commit("G", "BenchmarkTest", queue_id, 25)
        self.down_from = int(RequestCode.UPDATE_CONSUMER_OFFSET)
        self.asked.clear()
        self.sync_offsets()
        self.assertEqual(self.asked.count(self.down_from), 1)
        self.down_from = None
        self.sync_offsets()
        offsets = self.master.controller.offsets
        self.assertEqual([offsets.query("G", "BenchmarkTest", queue_id) for queue_id in range(3)], [25] * 3)
        self.assertFalse(self.synchronize.has_own_offsets)


class RecordedTests(SynchronizeCase):
    def invoke(self, address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        """Return the answer of Apache's master to its slave for the same code."""
        rows, data = frame_index("slave_sync"), frames("slave_sync")
        for row in rows:
            asked = rows[row["answers"]] if row["answers"] is not None else {}
            if asked.get("code") == command.code and asked["direction"].startswith("slave->master"):
                frame = data[row["offset"] : row["offset"] + row["length"]]
                return defer.succeed(FrameDecoder().receive_data(frame)[0])
        return defer.fail(RemotingConnectError("not recorded"))

    def test_recorded_answers_of_apaches_master(self) -> None:
        self.sync()
        slave = self.slave.controller
        self.assertEqual(slave.offsets.offsets, {"CapHa@CG_ha": {0: 6, 1: 5}})
        self.assertEqual(self.delays.data_version, DataVersion(timestamp=1795218542880))
        self.assertEqual(slave.groups.data_version, DataVersion(timestamp=1795218581954, counter=1))
        self.assertIn("CG_ha", slave.groups.groups)
