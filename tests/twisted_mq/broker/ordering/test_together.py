"""Topics whose queues move as one: any producer's messages, registrations, the slave that acts for its master."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.support.ordered_groups import Client, Cluster
from twisted_mq.ordering.lists import Term
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.batch_entry import encode_entry
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.order_mark import ORDER_HEAD, OrderMark


class TogetherCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.cluster = Cluster("a", "b", queues=4, together=True)
        self.cluster.until(lambda: len(self.cluster.lists().send) == 2)
        self.first, self.second = self.cluster.lists().send
        self.cluster.until_taken(self.first)

    def master(self, group: str) -> Client:
        return self.cluster.client(f"{group}-0")

    def shown(self, name: str) -> tuple[int, int, bool]:
        """Return the registration of a broker: the permissions of the ordered topic and of a plain one, and True if it acts."""
        routes = self.cluster.brokers[name].controller.ordering.routes
        assert routes is not None
        ordered, plain = routes.shown(self.cluster.configs)
        return ordered.perm, plain.perm, routes.acting


class PlainProducerTests(TogetherCase):
    def test_message_is_marked_with_epoch_and_queue(self) -> None:
        answer = self.master(self.first).sent(b"x", queue_id=3)
        self.assertEqual((answer.code, answer.ext_fields["queueOffset"]), (ResponseCode.SUCCESS, "0"))
        store = self.cluster.brokers[f"{self.first}-1"].store
        record = store.look_message(store.queue_entries("T", 3, 0, 1)[0][0])
        self.assertEqual(decode_message(record, 0).properties["ORDERED"], "1:3")

    def test_batch_is_taken_whole_and_each_message_marked(self) -> None:
        body = b"".join(encode_entry(0, b"%d" % number, b"") for number in range(3))
        fields = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "2", "f": "0", "g": "1", "h": "0", "j": "0", "m": "true",
                  "i": ""}  # fmt: skip
        client = self.master(self.first)
        answer = client.answer(client.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body), 0.2)
        assert answer is not None
        self.assertEqual(answer.code, ResponseCode.SUCCESS, answer.remark)
        store = self.cluster.brokers[f"{self.first}-1"].store
        records = [store.look_message(physical) for physical, _, _ in store.queue_entries("T", 2, 0, 9)]
        self.assertEqual([decode_message(one, 0).properties["ORDERED"] for one in records], ["1:2"] * 3)

    def test_other_group_refuses(self) -> None:
        answer = self.master(self.second).sent(b"x")
        self.assertEqual((answer.code, answer.ext_fields[ORDER_HEAD]), (ResponseCode.NO_PERMISSION, self.first))

    def test_ordered_producers_messages_are_told_from_plain_ones_in_between(self) -> None:
        term, client = self.cluster.leader(unit="all"), self.master(self.first)
        marks = [OrderMark(1, 0, term, 1, sequence) for sequence in (1, 2)]
        first = client.sent(b"1", marks[0])
        self.assertEqual(first.code, ResponseCode.SUCCESS, first.remark)
        client.sent(b"plain")
        self.assertEqual(client.sent(b"2", marks[1]).ext_fields["queueOffset"], "2")
        self.assertEqual(client.sent(b"1", marks[0]).ext_fields, first.ext_fields)


class RouteTests(TogetherCase):
    def test_head_is_writable_what_is_consumed_readable_others_neither(self) -> None:
        self.assertEqual(self.shown(f"{self.first}-0"), (6, 6, False))
        self.assertEqual(self.shown(f"{self.second}-0"), (0, 6, False))
        self.assertEqual(self.shown(f"{self.first}-1"), (4, 6, False))

    def test_name_servers_are_told_at_once_when_the_head_changes(self) -> None:
        self.master(self.first).sent(b"x")
        before = self.cluster.brokers[f"{self.second}-0"].registered
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.cluster.until_head(self.second)
        self.cluster.until_taken(self.second)
        self.assertEqual(self.shown(f"{self.first}-0")[0], 4)
        self.assertEqual(self.shown(f"{self.second}-0")[0], 2)
        self.assertEqual(self.cluster.brokers[f"{self.second}-0"].registered, before + 1)

    def test_each_change_has_another_version(self) -> None:
        routes = self.cluster.brokers[f"{self.first}-0"].controller.ordering.routes
        assert routes is not None
        before = routes.version
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.cluster.until_head(self.second)
        self.cluster.run(0.1)
        self.assertGreater(routes.version, before)

    def test_slave_acts_for_its_master_while_that_is_gone(self) -> None:
        self.master(self.first).sent(b"x")
        self.cluster.brokers[f"{self.first}-0"].kill()
        self.cluster.until_head(self.second)
        self.cluster.until(lambda: not self.cluster.has_member(self.first, 0))
        self.cluster.run(0.1)
        self.assertEqual(self.shown(f"{self.first}-1"), (4, 6, True))
        self.cluster.brokers[f"{self.first}-0"].restart()
        self.cluster.until(lambda: self.cluster.has_member(self.first, 0))
        self.cluster.run(0.1)
        self.assertEqual(self.shown(f"{self.first}-1"), (4, 6, False))

    def test_slave_is_registered_anew_when_the_name_servers_have_dropped_its_master(self) -> None:
        """Before that they ignore a slave's topics, and later a registration with the same version."""
        slave = self.cluster.brokers[f"{self.first}-1"]
        before = slave.registered
        slave.controller.min_broker_id = 1
        self.cluster.run(3)
        self.assertEqual(slave.registered, before + 1)

    def test_master_without_session_is_not_writable(self) -> None:
        master = self.cluster.brokers[f"{self.first}-0"]
        master.coordinator.expire()
        self.cluster.run(0.01)
        self.assertEqual(self.shown(master.name)[0] & 2, 0)


class ConsumerTests(TogetherCase):
    def test_all_queues_are_consumed_before_the_next_group(self) -> None:
        for queue_id in range(4):
            self.master(self.first).sent(b"old", queue_id=queue_id)
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.cluster.until_head(self.second)
        self.cluster.until_taken(self.second)
        self.master(self.second).sent(b"new", queue_id=1)
        for queue_id in range(4):
            self.cluster.run(2)
            self.assertEqual(self.cluster.lists().consumed, Term(self.first, 1))
            self.master(self.first).commit(1, queue_id=queue_id)
        self.cluster.until(lambda: self.cluster.lists().consume == (Term(self.second, 2),))
        self.cluster.run(0.1)
        self.assertEqual(self.master(self.second).pulled(0, queue_id=1)[2], [b"new"])

    def test_group_that_was_never_here_begins_with_the_term_wherever_it_asks(self) -> None:
        """Its client would else begin at the queue's end, and miss what came before it asked."""
        self.master(self.first).sent(b"1")
        self.assertEqual(self.master(self.first).committed(group="New"), 0)
        self.assertEqual(self.master(self.second).committed(group="New"), 0)

    def test_member_that_has_an_earlier_term_in_mind_takes_no_offset_back(self) -> None:
        """An orderly consumer of Apache's commits what it began with, also what its group left behind since."""
        master, slave = self.master(self.first), self.cluster.brokers[f"{self.first}-1"]
        master.sent(b"old")
        master.commit(1)
        slave.kill()
        self.cluster.until(lambda: not self.cluster.lists().has_backlog(self.first))
        slave.restart()
        self.cluster.until(lambda: self.first in self.cluster.lists().send)
        self.cluster.run(0.1)
        master.commit(0)
        self.assertEqual(self.cluster.brokers[f"{self.first}-0"].controller.offsets.query("C", "T", 0), 1)
        pull = {"consumerGroup": "C", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "5",
                "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0", "subscription": "*"}  # fmt: skip
        master.answer(master.ask(RequestCode.PULL_MESSAGE, pull), 0.1)
        self.assertEqual(self.cluster.brokers[f"{self.first}-0"].controller.offsets.query("C", "T", 0), 1)

    def test_reader_of_what_a_lost_end_had_goes_on_behind_what_its_group_committed(self) -> None:
        """Apache's consumer has pulled more than it consumed, and continues at the offset that it gets."""
        master = self.master(self.first)
        for number in range(4):
            master.sent(b"%d" % number)
        self.cluster.run(0.1)
        self.assertEqual(master.pulled(9)[:2], (ResponseCode.PULL_OFFSET_MOVED, 0))
        master.commit(2)
        self.assertEqual(master.pulled(9)[:2], (ResponseCode.PULL_OFFSET_MOVED, 2))
        self.assertEqual(master.pulled(2)[2], [b"2", b"3"])
