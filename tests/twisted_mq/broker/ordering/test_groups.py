"""Broker groups under the article's rules: who takes sends and who is consumed, through the loss of any broker."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from tests.support.ordered_groups import Client, Cluster
from twisted_mq.coordination.interfaces import Create, Delete, Put
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.changes import change
from twisted_mq.ordering.documents import GroupWish, encode_group
from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.ordering.paths import GROUPS, group_path, member_path, unit_path
from twisted_mq.ordering.rules import Lost, Moved
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.messages.order_mark import ORDER_EPOCH, ORDER_EXPECTED, ORDER_HEAD, ORDER_LEADER, OrderMark


class OrderedCase(SynchronousTestCase):
    groups = ("a", "b")

    def setUp(self) -> None:
        self.cluster = Cluster(*self.groups)
        self.cluster.until(lambda: sorted(self.cluster.lists().send) == sorted(self.groups))
        self.first = self.cluster.lists().head or ""
        self.second = next(group for group in self.groups if group != self.first)
        self.term = self.cluster.leader()
        self.cluster.until_taken(self.first)

    def shown(self) -> Lists:
        """The lists without what they know of earlier heads."""
        return attrs.evolve(self.cluster.lists(), led=())

    def master(self, group: str) -> Client:
        return self.cluster.client(f"{group}-0")

    def slave(self, group: str) -> Client:
        return self.cluster.client(f"{group}-1")

    def mark(self, sequence: int, base: int = 1, epoch: int = 1, leader: int | None = None) -> OrderMark:
        return OrderMark(epoch, 0, self.term if leader is None else leader, base, sequence)

    def send(self, group: str, *sequences: int, base: int = 1, epoch: int = 1) -> None:
        """Send messages whose bodies are their sequences; all are acknowledged."""
        client = self.master(group)
        for sequence in sequences:
            answer = client.sent(b"%d" % sequence, self.mark(sequence, base, epoch))
            self.assertEqual(answer.code, ResponseCode.SUCCESS, answer.remark)

    def consume(self, client: Client, *, group: str = "C") -> list[bytes]:
        """Whatever there is from the committed offset on, and commit it."""
        _, end, found = client.pulled(client.committed(group=group), group=group)
        client.commit(end, group=group)
        return found

    def move_on(self) -> None:
        """The first group's master dies; the second one takes sends."""
        self.cluster.brokers[f"{self.first}-0"].kill()
        self.cluster.until_head(self.second)
        self.cluster.until_taken(self.second)


class HeadTests(OrderedCase):
    def test_first_group_that_is_well_takes_sends_and_is_consumed_the_other_waits(self) -> None:
        self.assertEqual(self.shown(), Lists(1, (self.first, self.second), (Term(self.first, 1),)))

    def test_send_is_acknowledged_by_the_head_once_its_slave_has_it(self) -> None:
        self.send(self.first, 1, 2)
        master, slave = (self.cluster.brokers[f"{self.first}-{broker_id}"] for broker_id in (0, 1))
        self.assertEqual(slave.log_end, master.log_end)
        self.assertEqual(self.consume(self.master(self.first)), [b"1", b"2"])

    def test_nothing_is_acknowledged_while_the_slave_hears_nothing(self) -> None:
        self.cluster.network.cut(f"{self.first}-0", f"{self.first}-1")
        client = self.master(self.first)
        opaque = client.send(b"1", self.mark(1))
        self.assertIsNone(client.answer(opaque, 0.5))
        self.cluster.until_head(self.second)
        answer = client.answer(opaque, 0.1)
        assert answer is not None
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        self.assertEqual(answer.ext_fields[ORDER_HEAD], self.second)

    def test_other_group_refuses_and_says_who_takes_it(self) -> None:
        answer = self.master(self.second).sent(b"1", self.mark(1))
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        self.assertEqual((answer.ext_fields[ORDER_HEAD], answer.ext_fields[ORDER_EPOCH]), (self.first, "1"))
        self.assertEqual(
            answer.remark,
            f"topic T, queue 0: {self.second} does not accept this send, {self.first} accepts them in epoch 1. Send there",
        )

    def test_head_refuses_another_epoch(self) -> None:
        answer = self.master(self.first).sent(b"1", self.mark(1, epoch=7))
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        self.assertEqual(answer.ext_fields[ORDER_EPOCH], "1")

    def test_nothing_is_written_to_the_coordinator_while_nothing_fails(self) -> None:
        self.send(self.first, 1)
        self.consume(self.master(self.first))
        self.cluster.run(1)
        before = self.cluster.ensemble.tree.last_transaction
        self.cluster.run(20)
        self.assertEqual(self.cluster.ensemble.tree.last_transaction, before)


class PipelineTests(OrderedCase):
    def test_message_that_comes_too_early_is_refused_until_those_before_it_came(self) -> None:
        client = self.master(self.first)
        self.send(self.first, 1)
        early = client.sent(b"3", self.mark(3))
        self.assertEqual((early.code, early.ext_fields[ORDER_EXPECTED]), (ResponseCode.SYSTEM_BUSY, "2"))
        self.send(self.first, 2, 3)
        self.assertEqual(self.consume(client), [b"1", b"2", b"3"])

    def test_repeat_is_answered_as_the_first_time_and_not_stored_again(self) -> None:
        client = self.master(self.first)
        first = client.sent(b"1", self.mark(1))
        self.send(self.first, 2)
        again = client.sent(b"1", self.mark(1))
        self.assertEqual(again.ext_fields, first.ext_fields)
        self.assertEqual(self.consume(client), [b"1", b"2"])

    def test_sends_that_arrive_while_the_leader_is_asked_for_keep_their_order(self) -> None:
        client = self.master(self.first)
        opaques = [client.send(b"%d" % number, self.mark(number)) for number in (1, 2, 3)]
        self.cluster.run(0.2)
        self.assertEqual([client.answer(one).code for one in opaques], [0, 0, 0])  # type: ignore[union-attr]
        self.assertEqual(self.consume(client), [b"1", b"2", b"3"])

    def test_deposed_leader_is_refused(self) -> None:
        self.send(self.first, 1)
        old = self.term
        self.cluster.last_candidate.stop()
        self.cluster.run(0.1)
        self.term = self.cluster.leader()
        self.assertGreater(self.term, old)
        self.send(self.first, 1)
        answer = self.master(self.first).sent(b"late", self.mark(2, leader=old))
        self.assertEqual((answer.code, answer.ext_fields[ORDER_LEADER]), (ResponseCode.NO_PERMISSION, str(self.term)))
        self.assertEqual(self.consume(self.master(self.first)), [b"1", b"1"])

    def test_delayed_frame_of_a_deposed_leader_is_refused_in_a_fresh_epoch(self) -> None:
        old = self.term
        self.cluster.last_candidate.stop()
        self.cluster.run(0.1)
        self.term = self.cluster.leader()
        answer = self.master(self.first).sent(b"late", self.mark(1, leader=old))
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        self.send(self.first, 1)

    def test_nobody_sends_without_standing_for_election(self) -> None:
        self.cluster.last_candidate.stop()
        self.cluster.run(0.1)
        answer = self.master(self.first).sent(b"1", self.mark(1))
        self.assertEqual((answer.code, answer.remark), (ResponseCode.NO_PERMISSION, "no producer leads T"))

    def test_another_group_of_producers_takes_over_with_a_higher_term(self) -> None:
        self.send(self.first, 1)
        first, old = self.cluster.last_candidate, self.term
        first.stop()
        self.term = self.cluster.leader("Q")
        self.assertGreater(self.term, old)
        answer = self.master(self.first).sent(b"2", self.mark(1), group="Q")
        self.assertEqual(answer.code, ResponseCode.SUCCESS, answer.remark)
        late = self.master(self.first).sent(b"late", self.mark(2, leader=old))
        self.assertEqual((late.code, late.ext_fields[ORDER_LEADER]), (ResponseCode.NO_PERMISSION, str(self.term)))


class MasterLostTests(OrderedCase):
    def test_next_group_takes_over_when_the_slave_loses_its_link_long_before_the_session_ends(self) -> None:
        self.send(self.first, 1)
        self.cluster.brokers[f"{self.first}-0"].kill()
        self.assertLess(self.cluster.until_head(self.second), 1.0)
        self.assertTrue(self.cluster.has_member(self.first, 0), "its session lives")
        self.assertEqual(self.shown(), Lists(2, (self.second,), (Term(self.first, 1), Term(self.second, 2))))

    def test_slave_of_the_lost_master_is_consumed_to_its_end_then_the_next_group(self) -> None:
        self.send(self.first, 1, 2, 3)
        self.assertEqual(self.consume(self.master(self.first)), [b"1", b"2", b"3"])
        self.move_on()
        self.send(self.second, 4, 5, base=4, epoch=2)
        self.assertEqual(self.master(self.second).pulled()[2], [], "not before the first group is consumed")
        slave = self.slave(self.first)
        self.assertEqual(self.consume(slave), [b"1", b"2", b"3"], "commits that the slave did not copy: repeats")
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))
        self.cluster.run(0.1)
        self.assertEqual(self.consume(self.master(self.second)), [b"4", b"5"])

    def test_group_with_a_backlog_that_returns_waits_until_it_is_consumed(self) -> None:
        self.send(self.first, 1, 2)
        self.master(self.first).commit(0)
        self.move_on()
        self.cluster.brokers[f"{self.first}-0"].restart()
        self.cluster.run(10)
        self.assertEqual(self.cluster.lists().send, (self.second,))
        self.assertEqual(self.consume(self.master(self.first)), [b"1", b"2"])
        self.cluster.until(lambda: self.cluster.lists().send == (self.second, self.first))
        self.assertEqual(self.cluster.lists().consume, (Term(self.second, 2),))

    def test_message_that_was_not_acknowledged_is_passed_over_in_the_next_term(self) -> None:
        """The message is only on the returning master; its producer sent it to the next group."""
        self.send(self.first, 1)
        self.consume(self.master(self.first))
        self.cluster.network.cut(f"{self.first}-0", f"{self.first}-1")
        self.master(self.first).send(b"2", self.mark(2))
        self.move_on()
        self.send(self.second, 2, base=2, epoch=2)
        self.cluster.network.heal(f"{self.first}-0", f"{self.first}-1")
        self.assertEqual(self.consume(self.slave(self.first)), [b"1"])
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))
        self.assertEqual(self.consume(self.master(self.second)), [b"2"])
        self.cluster.brokers[f"{self.first}-0"].restart()
        self.cluster.until(lambda: self.first in self.cluster.lists().send)
        self.cluster.brokers[f"{self.second}-0"].kill()
        self.cluster.until_head(self.first)
        self.cluster.until_taken(self.first)
        self.send(self.first, 3, base=3, epoch=3)
        self.assertEqual(self.consume(self.slave(self.second)), [b"2"])
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.first, 3))
        self.cluster.run(0.1)
        self.assertEqual(self.consume(self.master(self.first)), [b"3"])
        table = self.cluster.brokers[f"{self.first}-0"].memory.tables["passed"]
        told = [
            (row.topic, row.queue_id, row.group, row.epoch, row.first_offset, row.count) for row in table.passed_over
        ]
        self.assertEqual((told, table.saved), ([("T", 0, "C", 1, 1, 1)], 1))

    def test_restarted_master_takes_no_sends_by_what_an_earlier_process_was(self) -> None:
        """The master may have lost the end of its log, and its session may still seem alive."""
        self.send(self.first, 1)
        self.cluster.brokers[f"{self.first}-0"].kill()
        self.cluster.brokers[f"{self.first}-0"].restart()
        answer = self.master(self.first).sent(b"2", self.mark(2))
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        self.cluster.run(1)
        self.assertEqual(self.cluster.lists().head, self.second, "at its start, not when its old session is over")


class SlaveLostTests(OrderedCase):
    def test_master_alone_leaves_the_send_list_at_once_and_is_consumed(self) -> None:
        self.send(self.first, 1)
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.assertLess(self.cluster.until_head(self.second), 1.5)
        self.assertEqual(self.consume(self.master(self.first)), [b"1"])
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))

    def test_group_is_back_when_its_slave_has_everything_again(self) -> None:
        self.send(self.first, 1)
        self.consume(self.master(self.first))
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.cluster.until_head(self.second)
        self.cluster.brokers[f"{self.first}-1"].restart()
        self.cluster.until(lambda: self.cluster.lists().send == (self.second, self.first))

    def test_slave_that_does_not_keep_up_costs_the_group_its_sends(self) -> None:
        self.cluster.network.cut(f"{self.first}-0", f"{self.first}-1")
        self.master(self.first).send(b"1", self.mark(1))
        self.assertLess(self.cluster.until_head(self.second), 2.0)

    def test_idle_group_whose_slave_is_silent_keeps_its_sends(self) -> None:
        self.cluster.network.cut(f"{self.first}-0", f"{self.first}-1")
        self.cluster.run(4)
        self.assertEqual(self.cluster.lists().head, self.first)


class BothLostTests(OrderedCase):
    def lose_both(self) -> None:
        self.send(self.first, 1, 2)
        self.master(self.first).commit(0)
        for broker_id in (0, 1):
            self.cluster.brokers[f"{self.first}-{broker_id}"].kill()
        self.cluster.until_head(self.second)
        self.cluster.until_taken(self.second)
        self.send(self.second, 3, base=3, epoch=2)

    def test_senders_go_on_and_consumers_wait_until_both_are_back(self) -> None:
        self.lose_both()
        self.cluster.run(30)
        self.assertEqual(self.cluster.lists().consumed, Term(self.first, 1))
        for broker_id in (0, 1):
            self.cluster.brokers[f"{self.first}-{broker_id}"].restart()
        self.cluster.run(7)
        self.assertEqual(self.consume(self.master(self.first)), [b"1", b"2"])
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))

    def test_broker_that_comes_back_alone_hands_out_but_never_says_that_all_is_consumed(self) -> None:
        self.lose_both()
        for broker_id in (0, 1):
            with self.subTest(broker_id=broker_id):
                alone = self.cluster.brokers[f"{self.first}-{broker_id}"].restart()
                self.cluster.run(8)
                client = self.cluster.client(alone.name)
                self.assertEqual(self.consume(client), [b"1", b"2"])
                self.cluster.run(10)
                self.assertEqual(self.cluster.lists().consumed, Term(self.first, 1))
                self.cluster.brokers[alone.name].kill()
                self.cluster.run(7)

    def test_consumer_of_messages_that_both_lost_passes_over_none_of_those_in_their_place(self) -> None:
        """Power cuts of both took the second message. The consumer that has it commits late, in the group's next term."""
        self.lose_both()
        for broker_id in (0, 1):
            self.cluster.brokers[f"{self.first}-{broker_id}"].restart(lost=1)
        self.cluster.run(7)
        master = self.master(self.first)
        self.assertEqual(self.consume(master), [b"1"])
        self.cluster.until(lambda: self.first in self.cluster.lists().send)
        for broker_id in (0, 1):
            self.cluster.brokers[f"{self.second}-{broker_id}"].kill()
        self.cluster.until_taken(self.first)
        epoch = self.cluster.lists().epoch
        self.send(self.first, 4, base=4, epoch=epoch)
        self.assertEqual(master.commit(2, orderTerm="1"), ResponseCode.SUCCESS)
        self.assertEqual(master.committed(), 1)
        self.assertEqual(master.commit(2, orderTerm=str(epoch)), ResponseCode.SUCCESS)
        self.assertEqual(master.committed(), 2)
        self.assertEqual(master.commit(1, orderTerm="1"), ResponseCode.SUCCESS)
        self.assertEqual(master.committed(), 2)
        self.assertEqual(master.commit(2, orderTerm="-1"), ResponseCode.INVALID_PARAMETER)

    def test_consumer_behind_what_both_lost_is_sent_back_while_another_term_is_consumed(self) -> None:
        """It would wait there for its group's next term, and go on in the middle of it. Apache's consumers wait so."""
        self.lose_both()
        for broker_id in (0, 1):
            self.cluster.brokers[f"{self.first}-{broker_id}"].restart(lost=2)
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))
        client = self.master(self.first)
        answer = client.answer(client.pull(2, wait_ms=15_000))
        assert answer is not None
        self.assertEqual((answer.code, answer.ext_fields["nextBeginOffset"]), (ResponseCode.PULL_OFFSET_MOVED, "0"))
        self.assertIsNone(client.answer(client.pull(0, wait_ms=15_000), 1), "it waits at the queue's end")

    def test_nobody_is_told_to_begin_behind_what_is_there_by_a_broker_that_knows_no_lists_yet(self) -> None:
        """Consumers would commit that offset, and the messages before it would never be delivered."""
        self.lose_both()
        broker = self.cluster.brokers[f"{self.first}-0"].restart()
        self.cluster.run(8)
        unit = broker.agent.units.get(("T", "0"))
        assert unit is not None
        unit.lists = Lists()
        client = self.cluster.client(broker.name)
        self.assertEqual([client.committed(), client.committed(group="New")], [0, 0])

    def test_master_that_lost_what_its_slave_has_keeps_consumers_waiting(self) -> None:
        self.send(self.first, 1, 2)
        self.master(self.first).commit(0)
        self.cluster.brokers[f"{self.first}-0"].kill()
        self.cluster.until_head(self.second)
        restarted = self.cluster.brokers[f"{self.first}-0"].restart(lost=1)
        self.cluster.run(7)
        self.assertEqual(self.consume(self.master(self.first)), [b"1"])
        self.cluster.run(10)
        self.assertEqual(self.cluster.lists().consumed, Term(self.first, 1))
        fault = restarted.agent.view.members[self.first][0].fault
        assert fault is not None
        self.assertIn("has more than its own", fault)
        self.cluster.brokers[f"{self.first}-0"].kill()
        self.cluster.run(7)
        self.slave(self.first).commit(1)
        self.assertEqual(self.consume(self.slave(self.first)), [b"2"])
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))

    def test_no_group_left_then_senders_wait(self) -> None:
        for group in (self.second, self.first):
            self.cluster.brokers[f"{group}-1"].kill()
        self.cluster.until_head(None)
        answer = self.master(self.first).sent(b"1", self.mark(1))
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        self.assertNotIn(ORDER_HEAD, answer.ext_fields)
        self.assertIn("no group accepts sends now", answer.remark or "")


class SessionTests(OrderedCase):
    def test_master_without_a_word_from_the_coordinator_refuses_before_its_session_is_over(self) -> None:
        self.send(self.first, 1)
        master = self.cluster.brokers[f"{self.first}-0"]
        master.coordinator.link.cut(silently=True)
        took = self.cluster.until(lambda: self.master(self.first).sent(b"2", self.mark(2)).code != 0)
        self.assertLess(took, 4.0)
        self.assertTrue(self.cluster.has_member(self.first, 0), "its session lives")
        self.cluster.until_head(self.second)

    def test_master_that_was_paused_for_longer_than_its_session_takes_nothing(self) -> None:
        self.send(self.first, 1)
        client, master = self.master(self.first), self.cluster.brokers[f"{self.first}-0"]
        master.host.pause()
        self.cluster.until_head(self.second)
        answer = client.sent(b"2", self.mark(2))
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        master.host.resume()
        self.cluster.run(1)
        self.assertEqual(client.sent(b"2", self.mark(2)).code, ResponseCode.NO_PERMISSION)

    def frozen(self) -> Client:
        """The first group's master hears nothing of the coordinator any more, and its clock, so its lease, stands still."""
        master = self.cluster.brokers[f"{self.first}-0"]
        master.agent.units._holds = lambda: True
        master.coordinator.link.cut(silently=True)
        return self.master(self.first)

    def test_master_whose_clock_stands_still_acknowledges_nothing_in_a_term_that_its_slave_called_consumed(
        self,
    ) -> None:
        self.send(self.first, 1)
        self.consume(self.master(self.first))
        client = self.frozen()
        self.cluster.until_head(self.second)
        slave = self.slave(self.first)
        self.cluster.run(0.2)
        self.consume(slave)
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))
        opaque = client.send(b"2", self.mark(2))
        self.cluster.run(0.5)
        self.assertEqual(
            self.cluster.brokers[f"{self.first}-1"].log_end, self.cluster.brokers[f"{self.first}-0"].log_end
        )
        self.assertIsNone(client.answer(opaque, 0.5), "its slave has the message, and confirms it in no session")
        self.assertEqual(self.consume(client), [], "a consumer would get it behind the term of the second group")
        master = self.cluster.brokers[f"{self.first}-0"]
        before = master.coordinator.session_id
        master.coordinator.link.heal()
        consumed = []
        for _ in range(400):
            self.cluster.run(0.01)
            consumed += self.consume(client)
        self.assertNotIn(master.coordinator.session_id, (0, before))
        self.assertEqual(consumed, [], "nor before it has read in its next session what is consumed now")

    def test_what_the_slave_confirms_is_handed_out_once_the_lists_are_read_in_this_session(self) -> None:
        """Until then a master may take a term for the consumed one that its slave has told to be over."""
        self.send(self.first, 1)
        client = self.master(self.first)
        self.consume(client)
        agent = self.cluster.brokers[f"{self.first}-0"].agent
        agent._fresh = False
        self.send(self.first, 2)
        self.cluster.run(1)
        self.assertEqual(self.consume(client), [])
        agent._fresh = True
        self.cluster.run(1)
        self.assertEqual(self.consume(client), [b"2"])

    def test_what_was_acknowledged_before_the_lists_were_read_is_of_the_term(self) -> None:
        """The master leaves the send list before its next look, and its slave may be gone by then."""
        for slave_is_gone in (False, True):
            with self.subTest(slave_is_gone=slave_is_gone):
                self.setUp()
                self.send(self.first, 1)
                self.consume(self.master(self.first))
                agent = self.cluster.brokers[f"{self.first}-0"].agent
                assert agent._job is not None
                agent._job.stop()
                agent._fresh = False
                self.send(self.first, 2)
                if slave_is_gone:
                    self.cluster.brokers[f"{self.first}-1"].kill()
                    self.cluster.run(0.1)
                agent._fresh = True
                self.cluster.await_(change(self.cluster.operator, "T", "0", Lost(self.first), lambda group: None))
                self.cluster.run(1)
                self.assertEqual(self.cluster.lists().consume, (Term(self.first, 1), Term(self.second, 2)))
                self.assertEqual(self.consume(self.master(self.first)), [b"2"])

    def test_slave_confirms_its_master_again_in_the_next_session(self) -> None:
        self.send(self.first, 1)
        self.consume(self.master(self.first))
        master = self.cluster.brokers[f"{self.first}-0"]
        (connection,) = master.controller.ha.accept.connections
        before = connection.reader.session
        self.assertEqual(before, master.coordinator.session_id)
        self.cluster.run(0.5)
        master.coordinator.expire()
        self.cluster.until(lambda: connection.reader.session not in (0, before))
        self.assertEqual(connection.reader.session, master.coordinator.session_id)
        self.cluster.until(lambda: set(self.cluster.lists().send) == {self.first, self.second})

    def test_only_the_groups_one_slave_confirms(self) -> None:
        """A second copy of the log never counts for an acknowledgement, because it is never withdrawn."""
        self.send(self.first, 1)
        master = self.cluster.brokers[f"{self.first}-0"].controller
        offsets = master.ha.accept.confirmed_offsets(self.cluster.brokers[f"{self.first}-0"].coordinator.session_id)
        self.assertEqual(list(offsets), [self.cluster.brokers[f"{self.first}-0"].log_end])
        self.assertEqual(list(master.ha.accept.confirmed_offsets(0)), [])
        self.assertEqual(list(master.ha.accept.confirmed_offsets(12345)), [])

    def test_master_whose_node_was_deleted_by_a_hand_is_head_no_longer(self) -> None:
        self.send(self.first, 1)
        self.consume(self.master(self.first))
        self.cluster.await_(self.cluster.operator.commit([Delete(member_path(self.first, 0))]))
        self.cluster.until_head(self.second)
        self.cluster.until(lambda: set(self.cluster.lists().send) == {self.first, self.second})

    def test_what_waits_for_the_slave_is_refused_when_the_session_is_over(self) -> None:
        self.send(self.first, 1)
        client = self.master(self.first)
        self.cluster.network.cut(f"{self.first}-0", f"{self.first}-1")
        opaque = client.send(b"2", self.mark(2))
        self.cluster.run(0.1)
        self.cluster.brokers[f"{self.first}-0"].coordinator.expire()
        self.cluster.run(0.1)
        self.cluster.network.heal(f"{self.first}-0", f"{self.first}-1")
        answer = client.answer(opaque, 0.5)
        assert answer is not None
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)

    def test_coordinator_away_for_a_while_then_all_goes_on(self) -> None:
        self.send(self.first, 1)
        self.cluster.ensemble.stop()
        self.cluster.run(60)
        self.assertEqual(self.master(self.first).sent(b"2", self.mark(2)).code, ResponseCode.NO_PERMISSION)
        self.assertEqual(self.consume(self.master(self.first)), [b"1"], "consuming goes on")
        self.cluster.ensemble.start()
        self.cluster.run(3)
        self.send(self.first, 2)

    def test_answer_of_the_coordinator_that_got_lost_changes_nothing(self) -> None:
        for broker in self.cluster.brokers.values():
            broker.coordinator.link.drop_answer()
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.cluster.until_head(self.second)
        self.cluster.run(5)
        self.assertEqual(self.shown(), Lists(2, (self.second,), (Term(self.second, 2),)))


class OperatorTests(OrderedCase):
    def test_broker_that_stops_leaves_at_once(self) -> None:
        self.cluster.brokers[f"{self.first}-0"].stop()
        self.assertEqual(self.cluster.lists().head, self.second)
        self.assertFalse(self.cluster.has_member(self.first, 0))

    def test_broker_that_stops_without_a_coordinator_is_done_in_time(self) -> None:
        broker = self.cluster.brokers[f"{self.first}-0"]
        broker.coordinator.link.cut(silently=True)
        stopped = broker.agent.stop()
        self.cluster.run(5)
        self.successResultOf(stopped)

    def test_retired_group_leaves_and_comes_back_when_it_is_taken_back(self) -> None:
        self.put(group_path(self.first), encode_group(GroupWish(retired=True)))
        self.assertLess(self.cluster.until_head(self.second), 1.0)
        self.put(group_path(self.first), encode_group(GroupWish(retired=False)))
        self.cluster.until(lambda: self.cluster.lists().send == (self.second, self.first))

    def test_hand_over(self) -> None:
        self.send(self.first, 1)
        agent = self.cluster.brokers[f"{self.first}-0"].agent
        self.cluster.await_(change(self.cluster.operator, "T", "0", Moved(self.second), agent.view.fault))
        self.cluster.until_taken(self.second)
        self.assertEqual(self.shown(), Lists(2, (self.second,), (Term(self.first, 1), Term(self.second, 2))))

    def test_lists_that_a_hand_made_impossible_block_everything_and_say_why(self) -> None:
        self.send(self.first, 1)
        before = self.cluster.ensemble.tree[unit_path("T", "0")]
        assert before is not None
        self.put(unit_path("T", "0"), b'{"epoch":1,"send":["a","a"],"consume":[["a",1]]}')
        self.cluster.run(1)
        client = self.master(self.first)
        answer = client.sent(b"2", self.mark(2))
        self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
        self.assertIn('/topics/T/0: send: has a group twice, got ["a", "a"]', answer.remark or "")
        pulled = client.answer(client.pull())
        assert pulled is not None
        self.assertEqual(pulled.code, ResponseCode.NO_PERMISSION)
        self.put(unit_path("T", "0"), before.data)
        self.cluster.run(1)
        self.send(self.first, 2)

    def test_consumer_group_that_never_comes_back_holds_up_all_until_it_is_deleted(self) -> None:
        self.send(self.first, 1)
        client = self.master(self.first)
        client.commit(0, group="Gone")
        self.cluster.run(0.5)
        self.consume(client)
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.cluster.until_head(self.second)
        self.cluster.run(5)
        self.assertEqual(self.cluster.lists().consumed, Term(self.first, 1))
        client.answer(client.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "Gone", "cleanOffset": "true"}))
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))

    def put(self, path: str, data: bytes) -> None:
        self.cluster.await_(make_paths(self.cluster.operator, [GROUPS]))
        node = self.cluster.ensemble.tree[path]
        operation = Create(path, data) if node is None else Put(path, data, None)
        self.cluster.await_(self.cluster.operator.commit([operation]))
