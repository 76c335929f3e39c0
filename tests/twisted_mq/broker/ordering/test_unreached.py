"""A producer reports a head that it cannot reach: the group leaves for another one that is well, but not again and again."""

from __future__ import annotations

from tests.twisted_mq.broker.ordering.test_groups import OrderedCase
from twisted_mq.coordination.interfaces import Create, Put
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.documents import UnreachedHead, encode_unreached
from twisted_mq.ordering.lists import Term
from twisted_mq.ordering.paths import unreached_path

PATH = unreached_path("T", "0")
SESSION_SECONDS = 6.0


class UnreachedTests(OrderedCase):
    def report(self, group: str, epoch: int, data: bytes | None = None) -> None:
        self.cluster.await_(make_paths(self.cluster.operator, [PATH.rpartition("/")[0]]))
        document = encode_unreached(UnreachedHead(group, epoch, "10.0.0.1@1")) if data is None else data
        operation = Create(PATH, document) if self.cluster.ensemble.tree[PATH] is None else Put(PATH, document, None)
        self.cluster.await_(self.cluster.operator.commit([operation]))

    def test_reported_head_leaves_for_the_next_group_and_loses_nothing(self) -> None:
        self.send(self.first, 1, 2)
        self.report(self.first, 1)
        self.assertLess(self.cluster.until_head(self.second), SESSION_SECONDS)
        self.cluster.until_taken(self.second)
        self.send(self.second, 3, base=3, epoch=2)
        self.assertEqual(self.consume(self.master(self.first)), [b"1", b"2"])
        self.cluster.until(lambda: self.cluster.lists().consumed == Term(self.second, 2))
        self.cluster.run(0.5)
        self.assertEqual(self.consume(self.master(self.second)), [b"3"])
        self.cluster.until(lambda: self.cluster.lists().send == (self.second, self.first))

    def test_report_of_another_epoch_or_group_or_without_sense_moves_nothing(self) -> None:
        self.report(self.first, 7)
        self.cluster.run(5)
        self.report(self.second, 1)
        self.cluster.run(5)
        self.report("", 0, b"{}")
        self.cluster.run(5)
        self.assertEqual((self.cluster.lists().head, self.cluster.lists().epoch), (self.first, 1))

    def test_head_stays_until_another_group_is_well(self) -> None:
        self.cluster.brokers[f"{self.second}-1"].kill()
        self.cluster.until(lambda: self.second not in self.cluster.lists().send)
        self.report(self.first, 1)
        self.cluster.run(20)
        self.assertEqual(self.cluster.lists().head, self.first)
        self.cluster.brokers[f"{self.second}-1"].restart()
        self.cluster.until_head(self.second)

    def test_group_that_left_for_a_report_does_not_leave_again_soon(self) -> None:
        """A producer that reaches no broker reports each head."""
        began, epochs = self.cluster.clock.seconds(), [1]
        while self.cluster.clock.seconds() - began < 50:
            lists = self.cluster.lists()
            if lists.head is not None:
                self.report(lists.head, lists.epoch)
            self.cluster.run(1)
            epochs.append(self.cluster.lists().epoch)
        self.assertEqual(max(epochs), 3, "each group left once")
        self.cluster.run(30)
        self.assertGreater(self.cluster.lists().epoch, 3, "and may again, much later")
