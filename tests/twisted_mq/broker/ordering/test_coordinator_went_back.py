"""A coordinator that was restored from an older state: the stores know more than the lists, and the queue is blocked."""

from __future__ import annotations

from twisted.logger import LogLevel, capturedLogs, formatEvent

from tests.twisted_mq.broker.ordering.test_groups import OrderedCase
from twisted_mq.coordination.interfaces import Delete, Put
from twisted_mq.ordering.documents import encode_lists, read_lists
from twisted_mq.ordering.lists import Lists, StoreMark, Term
from twisted_mq.ordering.paths import consumer_group_path, consumers_path, unit_path
from twisted_mq.ordering.rules import repaired
from twisted_mq.protocol.codes import ResponseCode

PATH = unit_path("T", "0")


class WentBackTests(OrderedCase):
    def raw(self) -> Lists:
        node = self.cluster.ensemble.tree[PATH]
        assert node is not None
        return read_lists(PATH, node.data)

    def write(self, lists: Lists) -> None:
        self.cluster.await_(self.cluster.operator.commit([Put(PATH, encode_lists(lists), None)]))

    def counted(self) -> list[str]:
        return sorted(self.cluster.await_(self.cluster.operator.children(consumers_path("T", "0"))))

    def kill_all(self) -> None:
        for broker in self.cluster.brokers.values():
            if broker.is_up:
                broker.kill()
        self.cluster.run(10)

    def start(self, *names: str) -> None:
        for name in names:
            self.cluster.brokers[name].restart()

    def taken_by_second(self) -> Lists:
        """1 is consumed at the first group, 2 and 3 wait at the second one. All brokers are down; the lists before that."""
        self.send(self.first, 1)
        self.consume(self.master(self.first))
        before = self.raw()
        self.move_on()
        self.cluster.until(lambda: self.consume(self.slave(self.first)) == [] and len(self.raw().consume) == 1)
        self.send(self.second, 2, 3, base=2, epoch=2)
        self.master(self.second).commit(0)
        self.kill_all()
        return before

    def test_group_whose_store_is_newer_blocks_the_queue_and_each_group_says_what_it_holds(self) -> None:
        before = self.taken_by_second()
        self.write(before)
        self.start(*self.cluster.brokers)
        self.cluster.until(lambda: len(self.raw().stores) == 2)
        marks = {mark.group: mark for mark in self.raw().stores}
        self.assertEqual({group: mark.epoch for group, mark in marks.items()}, {self.first: 1, self.second: 2})
        self.assertEqual(marks[self.second], StoreMark(self.second, 2, self.term))
        self.cluster.run(5)
        for group in self.groups:
            client = self.master(group)
            pulled = client.answer(client.pull())
            assert pulled is not None
            self.assertEqual(pulled.code, ResponseCode.NO_PERMISSION)
            self.assertIn(f"the store of {self.second} has messages of epoch 2", pulled.remark or "")
            self.assertIn("mq order repair T", pulled.remark or "")
            answer = client.sent(b"4", self.mark(4, 4, self.raw().epoch))
            self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)

    def forget_group(self) -> None:
        """B has consumed 1 and 2, and C only 1. The brokers go down, and the coordinator forgets C."""
        master = self.master(self.first)
        self.send(self.first, 1, 2)
        self.consume(master, group="B")
        self.assertEqual(master.pulled(0, group="C", most=1)[2], [b"1"])
        master.commit(1, group="C")
        self.cluster.until(lambda: self.counted() == ["B", "C"])
        self.cluster.run(30)
        self.kill_all()
        self.cluster.await_(self.cluster.operator.commit([Delete(consumer_group_path("C", "T", "0"))]))

    def test_a_group_that_the_coordinator_forgot_still_ends_no_term_that_it_has_not_consumed(self) -> None:
        """The snapshot is older than the group, and younger than the epoch: no store is newer than the lists."""
        self.forget_group()
        with capturedLogs() as events:
            self.start(*self.cluster.brokers)
            self.cluster.until_head(self.second)
            self.assertEqual(self.consume(self.master(self.first), group="B"), [])
            self.cluster.run(10)
        self.assertEqual(self.raw().consumed, Term(self.first, 1))
        self.assertEqual(self.counted(), ["B", "C"])
        lines = {formatEvent(event) for event in events if event["log_level"] is LogLevel.warn}
        self.assertIn(
            "groups have offsets here and did not count, they count again: /leaders/T/0/consumers ['C']", lines
        )
        self.assertEqual(self.consume(self.master(self.first), group="C"), [b"2"])
        self.cluster.until(lambda: self.raw().consumed == Term(self.second, 2))

    def test_a_deleted_group_with_offsets_does_not_count_again(self) -> None:
        self.forget_group()
        self.start(*self.cluster.brokers)
        for broker in self.cluster.brokers.values():
            broker.controller.groups.groups.pop("C", None)
        self.cluster.until_head(self.second)
        self.assertEqual(self.consume(self.master(self.first), group="B"), [])
        self.cluster.until(lambda: self.raw().consumed == Term(self.second, 2))
        self.assertEqual(self.counted(), ["B"])

    def test_repaired_lists_have_everything_consumed_and_rise(self) -> None:
        before = self.taken_by_second()
        self.write(before)
        self.start(*self.cluster.brokers)
        self.cluster.until(lambda: len(self.raw().stores) == 2)
        self.write(repaired(self.raw()))
        self.assertEqual(self.cluster.lists().consume[-1], Term(self.second, 2))
        self.cluster.run(1)
        self.consume(self.master(self.first))
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))
        self.cluster.run(1)
        self.assertEqual(self.consume(self.master(self.second)), [b"2", b"3"])
        self.cluster.until(lambda: self.cluster.lists().head is not None and self.cluster.lists().epoch > 2)
        self.cluster.run(5)
        self.assertEqual(self.raw().stores, ())

    def test_slave_alone_speaks_for_its_store(self) -> None:
        before = self.taken_by_second()
        self.write(before)
        self.start(f"{self.second}-1")
        self.cluster.until(lambda: [mark.group for mark in self.raw().stores] == [self.second])

    def test_epoch_that_was_given_again_before_the_newer_store_came_is_found(self) -> None:
        """The first group accepted messages in epoch 2 again; both are consumed, in the order of sending."""
        before = self.taken_by_second()
        self.write(before)
        self.start(f"{self.first}-0", f"{self.first}-1")
        self.cluster.run(8)
        self.consume(self.master(self.first))
        self.cluster.until(lambda: self.raw().epoch == 2 and self.raw().head == self.first)
        self.cluster.until_taken(self.first)
        self.send(self.first, 4, base=4, epoch=2)
        self.start(f"{self.second}-0", f"{self.second}-1")
        self.cluster.until(lambda: len(self.raw().stores) == 2)
        self.write(repaired(self.raw()))
        self.assertEqual(self.cluster.lists().consume, (Term(self.second, 2), Term(self.first, 2)))
        self.cluster.run(8)
        self.assertEqual(self.consume(self.master(self.second)), [b"2", b"3"])
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.first, 2))
        self.cluster.run(1)
        self.assertEqual(self.consume(self.master(self.first)), [b"4"])
        self.cluster.until(lambda: self.cluster.lists().epoch > 3)
        self.assertEqual(self.raw().stores, ())

    def test_lists_that_are_only_late_at_one_broker_are_not_blocked(self) -> None:
        self.send(self.first, 1)
        self.move_on()
        self.send(self.second, 2, base=2, epoch=2)
        self.cluster.run(5)
        self.assertEqual(self.raw().stores, ())
