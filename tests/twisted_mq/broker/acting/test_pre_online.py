"""What a returning master takes over from its slave, and what it does not believe."""

from __future__ import annotations

from tests.twisted_mq.broker.acting.online import SELF, SLAVE_AT, TOPIC, OnlineCase, append
from twisted_mq.protocol.bodies import DelayOffsetSerializeWrapper
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.names.system_topics import HALF_TOPIC, SCHEDULE_TOPIC, TRANSACTION_GROUP


class PreOnlineTests(OnlineCase):
    def setUp(self) -> None:
        self.prepare(ha_allowed_slaves="10.0.0.3")

    def take(self, **offsets: int) -> list[int | None]:
        """Take a slave's offsets of groups; return the master's afterwards."""
        self.group.members = {0: SELF, 1: SLAVE_AT}
        self.group.offsets = {f"{TOPIC}@{group}": {0: offset} for group, offset in offsets.items()}
        self.successResultOf(self.ask())
        return [self.offset(group) for group in offsets]

    def test_master_waits_for_a_name_server_and_for_each_slave(self) -> None:
        done = self.ask()
        self.assertNoResult(done)
        self.group.members, self.group.away = {1: SLAVE_AT}, {SLAVE_AT}
        self.broker.clock.advance(1)
        self.assertNoResult(done)
        self.group.away = set()
        self.broker.clock.advance(1)
        self.successResultOf(done)

    def test_master_alone_waits_for_nobody(self) -> None:
        self.group.members = {}
        self.successResultOf(self.ask())

    def test_offsets_that_are_ahead_are_taken_and_no_others(self) -> None:
        offsets = self.broker.controller.offsets
        offsets.commit("Behind", TOPIC, 0, 3)
        offsets.commit("Ahead", TOPIC, 0, 9)
        self.assertEqual(self.take(Behind=7, Ahead=7, New=4), [7, 9, 4])

    def test_no_offset_passes_over_what_came_after_the_start(self) -> None:
        """The slave's offset may count messages that this log lost; others have their places by now."""
        append(self.broker, "new", 2)
        append(self.slave, "lost", 2)
        self.assertEqual(self.take(G=12), [10])

    def test_no_offset_passes_over_what_came_after_an_earlier_start_that_lost_the_logs_end(self) -> None:
        """The first start did not know the slave. At the second one the new messages are below the log's end."""
        append(self.slave, "lost", 5)
        self.group.members = {}
        self.successResultOf(self.ask())
        append(self.broker, "new", 8)
        self.start()
        self.assertEqual(self.take(A=15, B=9, C=30), [10, 9, 10])

    def test_offsets_are_taken_although_the_slave_lacks_the_logs_end(self) -> None:
        """What the master appended last had not reached the slave when the master was lost."""
        append(self.broker, "not replicated", 3)
        self.start()
        self.assertEqual(self.take(G=10), [10])

    def test_how_far_half_messages_went_is_not_believed_of_a_slave_whose_log_has_more(self) -> None:
        """A commit that this log lost may have moved that offset."""
        for broker in (self.broker, self.slave):
            append(broker, "half", topic=HALF_TOPIC)
        append(self.slave, "its commit")
        for log_of_slave, wanted in ((self.slave, None), (self.broker, 1)):
            self.group.store = log_of_slave.store
            self.start()
            self.group.members = {1: SLAVE_AT}
            self.group.offsets = {f"{HALF_TOPIC}@{TRANSACTION_GROUP}": {0: 1}}
            self.successResultOf(self.ask())
            self.assertEqual(self.broker.controller.offsets.query(TRANSACTION_GROUP, HALF_TOPIC, 0), wanted)

    def test_apaches_slave_is_believed_about_delayed_messages_only_if_its_log_is_this_one(self) -> None:
        """Another start may have lost a copy that the slave counts as delivered."""
        for broker in (self.broker, self.slave):
            append(broker, "delayed", topic=SCHEDULE_TOPIC)
        self.broker.controller.clean = True
        self.group.active, self.group.delays = "true", DelayOffsetSerializeWrapper({1: 1}, None)
        self.group.members = {1: SLAVE_AT}
        append(self.slave, "copy that the master lost")
        for more, rows in ((0, 0), (1, 0)):
            append(self.broker, "new", more)
            self.start()
            self.successResultOf(self.ask())
            self.assertEqual(len(self.broker.controller.waiting.escaped.levels), rows)
        self.group.store = self.broker.store
        self.start()
        self.successResultOf(self.ask())
        self.assertEqual(len(self.broker.controller.waiting.escaped.levels), 1)

    def test_queue_that_this_log_does_not_have_gets_no_offset(self) -> None:
        self.group.members = {1: SLAVE_AT}
        self.group.offsets = {"Nowhere@G": {0: 5}, f"{TOPIC}@G": {99: 5}}
        self.successResultOf(self.ask())
        self.assertEqual(self.broker.controller.offsets.offsets, {})

    def test_logs_that_are_the_same_are_compared_at_two_places(self) -> None:
        """At the log's last message and at the message before the highest offset."""
        self.assertEqual(self.take(**{f"G{number}": number for number in range(1, 9)}), list(range(1, 9)))
        self.assertEqual(self.group.asked_of(SLAVE_AT).count(RequestCode.VIEW_MESSAGE_BY_ID), 2)

    def test_many_offsets_are_taken_in_slices(self) -> None:
        self.group.members = {1: SLAVE_AT}
        self.group.offsets = {f"{TOPIC}@{number}": {0: 7} for number in range(1200)}
        done = self.ask()
        self.assertNoResult(done)
        for _ in range(4):
            self.broker.clock.advance(0)
        self.successResultOf(done)
        self.assertEqual({self.offset(str(number)) for number in range(1200)}, {7})
