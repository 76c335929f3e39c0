"""Tests of the messages of ordered queues that retention has to keep, from the offsets of the consumer groups that count."""

from __future__ import annotations

from tests.twisted_mq.broker.ordering.test_groups import OrderedCase
from twisted_mq.coordination.interfaces import Put
from twisted_mq.ordering.lists import Lists
from twisted_mq.ordering.paths import unit_path
from twisted_mq.storage.retention import Needed


class NeededTests(OrderedCase):
    def needed(self, name: str) -> list[int]:
        """The queue offsets from which on a broker keeps messages."""
        broker = self.cluster.brokers[name]
        found: list[Needed] = self.cluster.await_(broker.controller.ordering.needed())
        for one in found:
            ((physical, _size, _tags),) = broker.store.queue_entries(one.topic, one.queue_id, one.queue_offset, 1)
            self.assertEqual(one.physical_offset, physical)
        return [one.queue_offset for one in found]

    def test_first_message_that_a_counted_group_has_not_consumed(self) -> None:
        master = f"{self.first}-0"
        self.send(self.first, 1, 2, 3)
        self.assertEqual(self.needed(master), [0], "nobody consumed yet")
        for group, offset, first in (("C", 2, [2]), ("D", 1, [1]), ("D", 3, [2]), ("C", 3, [])):
            self.master(self.first).commit(offset, group=group)
            self.cluster.run(0.5)
            self.assertEqual(self.needed(master), first, (group, offset))

    def test_group_that_counts_by_another_broker_is_waited_for(self) -> None:
        self.send(self.first, 1, 2)
        self.master(self.second).commit(0, group="Elsewhere")
        self.master(self.first).commit(2)
        self.cluster.run(0.5)
        self.assertEqual(self.needed(f"{self.first}-0"), [0])

    def test_slave_keeps_what_its_own_offsets_say(self) -> None:
        self.send(self.first, 1, 2)
        self.master(self.first).commit(2)
        self.cluster.run(0.5)
        self.assertEqual(self.needed(f"{self.first}-1"), [0])

    def test_group_without_a_term_keeps_nothing(self) -> None:
        self.send(self.first, 1, 2)
        self.consume(self.master(self.first))
        self.master(self.first).commit(1)
        self.move_on()
        self.consume(self.slave(self.first))
        self.cluster.until(lambda: self.first not in [term.group for term in self.cluster.lists().consume])
        self.cluster.run(0.5)
        self.assertEqual(self.needed(f"{self.first}-1"), [])

    def test_broker_that_does_not_know_the_lists_keeps_what_no_group_committed(self) -> None:
        self.send(self.first, 1, 2, 3)
        self.master(self.first).commit(1)
        self.cluster.ensemble.stop()
        self.cluster.brokers[f"{self.first}-1"].kill()
        self.cluster.brokers[f"{self.first}-1"].restart()
        self.cluster.run(3)
        self.assertEqual(self.needed(f"{self.first}-1"), [0])
        self.assertEqual(self.needed(f"{self.first}-0"), [1], "the coordinator is away")

    def test_broker_that_has_not_read_the_lists_yet_keeps_what_no_group_committed(self) -> None:
        self.send(self.first, 1, 2, 3)
        self.master(self.first).commit(1)
        unit = self.cluster.brokers[f"{self.first}-0"].agent.units.get(("T", "0"))
        assert unit is not None
        unit.lists, unit.learned = Lists(), False
        self.cluster.run(0.5)
        self.assertEqual(self.needed(f"{self.first}-0"), [1])

    def test_blocked_queue_keeps_what_no_group_committed(self) -> None:
        self.send(self.first, 1, 2, 3)
        self.master(self.first).commit(1)
        self.cluster.await_(self.cluster.operator.commit([Put(unit_path("T", "0"), b"{}", None)]))
        self.cluster.run(0.5)
        self.assertEqual(self.needed(f"{self.first}-0"), [1])
