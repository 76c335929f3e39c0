"""View of the coordinator's nodes, with all changes and faults."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.coordination.interfaces import (
    Conflict,
    Create,
    Delete,
    ICoordinator,
    NoAnswer,
    NotAllowed,
    Put,
    SessionEvent,
)
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.changes import CATCHING_UP, catch_up, change, is_absent
from twisted_mq.ordering.declaring import declare, take_back
from twisted_mq.ordering.documents import (
    BrokerMember,
    GroupWish,
    encode_group,
    encode_lists,
    encode_member,
    encode_topic,
)
from twisted_mq.ordering.lists import Lists, OrderedTopic, StoreMark, Term
from twisted_mq.ordering.paths import ROOTS, group_path, member_path, members_path, topic_path, unit_path
from twisted_mq.ordering.rules import Drained, Lost, NotWell, Ready
from twisted_mq.ordering.view import NOT_KNOWN, OrderView


class ViewCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.ensemble = MemoryEnsemble(self.clock)
        self.operator = self.ensemble.coordinator()
        self.coordinator = self.ensemble.coordinator()
        for client in (self.operator, self.coordinator):
            client.start()
        self.run_for(0.1)
        self.units: list[tuple[str, str]] = []
        self.others = 0
        self.view = OrderView(self.coordinator, lambda *unit: self.units.append(unit), self.count)
        self.coordinator.listen(lambda event: self.view.forget() if event is SessionEvent.LOST else None)
        self.do(make_paths(self.operator, ROOTS))

    def count(self) -> None:
        self.others += 1

    def run_for(self, seconds: float) -> None:
        for _ in range(max(1, round(seconds / 0.05))):
            self.clock.advance(0.05)

    def do(self, work: Any) -> Any:
        results: list[Any] = []
        defer.ensureDeferred(work).addBoth(results.append)
        for _ in range(100):
            self.run_for(0.05)
            if results:
                break
        if hasattr(results[0], "raiseException"):
            results[0].raiseException()
        return results[0]

    def commit(self, *operations: Any) -> None:
        self.do(self.operator.commit(operations))
        self.run_for(0.5)

    def declare(self, *units: str, groups: tuple[str, ...] = ("a", "b"), lists: Lists | None = None) -> None:
        topic = OrderedTopic("T", len(units), groups)
        made = [Create(unit_path("T", unit), encode_lists(lists or Lists())) for unit in units]
        self.commit(Create(topic_path("T"), encode_topic(topic)), *made)

    def join(self, group: str, *ids: int) -> None:
        self.do(make_paths(self.operator, [members_path(group)]))
        self.commit(*[Create(member_path(group, one), encode_member(BrokerMember(f"{group}:{one}"))) for one in ids])


class FollowingTests(ViewCase):
    def test_everything_that_is_there_is_known_once_it_is_complete(self) -> None:
        self.declare("0", "1")
        self.join("a", 0, 1)
        self.view.start()
        self.assertFalse(self.view.is_complete)
        self.run_for(0.5)
        self.assertTrue(self.view.is_complete)
        self.assertEqual(self.view.topics, {"T": OrderedTopic("T", 2, ("a", "b"))})
        self.assertEqual(self.view.units, {("T", "0"): Lists(), ("T", "1"): Lists()})
        self.assertEqual(self.view.members, {"a": {0: BrokerMember("a:0"), 1: BrokerMember("a:1")}, "b": {}})
        self.assertIsNone(self.view.fault("a"))
        self.assertEqual(self.view.fault("b"), "its master (brokerId 0) is not connected to the coordinator")
        self.assertEqual(self.view.fault("unheard"), NOT_KNOWN)

    def test_changes_are_told(self) -> None:
        self.view.start()
        self.run_for(0.5)
        self.assertTrue(self.view.is_complete)
        self.declare("0")
        self.assertEqual(self.units, [("T", "0")])
        self.units.clear()
        later = Lists(1, ("a",), (Term("a", 1),), led=(Term("a", 1),))
        self.commit(Put(unit_path("T", "0"), encode_lists(later), None))
        self.assertEqual((self.units, self.view.units["T", "0"]), ([("T", "0")], later))
        before = self.others
        self.join("a", 0, 1)
        self.assertGreater(self.others, before)
        self.commit(Put(member_path("a", 0), encode_member(BrokerMember("a:0", "its slave does not keep up")), None))
        self.assertEqual(self.view.fault("a"), "its slave does not keep up")
        self.commit(Delete(member_path("a", 1)))
        self.assertEqual(self.view.fault("a"), "its slave (brokerId 1) is not connected to the coordinator")

    def test_node_that_changes_while_it_is_read_is_read_once_more_afterwards(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        reads: list[defer.Deferred[Any]] = []

        def read(path: str) -> Any:
            reads.append(defer.Deferred())
            return reads[-1]

        self.view._followed[unit_path("T", "0")].read = read
        for epoch in (1, 2, 3):
            self.commit(Put(unit_path("T", "0"), encode_lists(Lists(epoch)), None))
        self.assertEqual(len(reads), 1)
        for number in (0, 1):
            reads[number].callback(None)
            self.run_for(0.5)
            self.assertEqual(len(reads), 2)

    def test_groups_that_are_still_consumed_are_followed_too(self) -> None:
        self.declare("0", groups=("a",), lists=Lists(2, ("a",), (Term("gone", 1), Term("a", 2))))
        self.view.start()
        self.run_for(0.5)
        self.assertIn("gone", self.view.members)

    def test_wishes(self) -> None:
        self.declare("0")
        self.join("a", 0, 1)
        self.view.start()
        self.run_for(0.5)
        self.commit(Create(group_path("a"), encode_group(GroupWish(retired=True))))
        self.assertEqual(self.view.fault("a"), "it is retired: mq order restore reactivates it")
        self.commit(Put(group_path("a"), b"nonsense", None))
        self.assertEqual(self.view.fault("a"), "it is retired: mq order restore reactivates it")
        self.assertIn(group_path("a"), self.view.problems)
        self.commit(Delete(group_path("a")))
        self.assertIsNone(self.view.fault("a"))

    def test_topic_that_is_deleted_is_forgotten(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        self.commit(Delete(unit_path("T", "0")), Delete(topic_path("T")))
        self.assertEqual((self.view.topics, self.view.units), ({}, {}))
        self.assertTrue(self.view.is_complete)

    def test_session_that_is_over_has_everything_read_again(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        self.coordinator.link.cut()
        self.run_for(0.2)
        self.coordinator.expire()
        self.commit(Put(unit_path("T", "0"), encode_lists(Lists(1, ("a",), (Term("a", 1),))), None))
        self.coordinator.link.heal()
        self.clock.advance(0.05)
        self.run_for(3)
        self.assertTrue(self.view.is_complete)
        self.assertEqual(self.view.units["T", "0"].head, "a")

    def test_groups_are_followed_whatever_is_declared(self) -> None:
        self.join("alone", 0)
        self.view.start("alone")
        self.run_for(0.5)
        self.assertEqual(self.view.members, {"alone": {0: BrokerMember("alone:0")}})
        self.assertEqual(self.view.wishes, {"alone": GroupWish()})

    def test_nothing_counts_until_it_is_read_again(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        self.view.read_again()
        self.assertEqual((self.view.is_complete, self.view.units), (False, {}))
        self.run_for(0.5)
        self.assertEqual((self.view.is_complete, self.view.units), (True, {("T", "0"): Lists()}))

    def test_lists_that_a_store_has_overtaken_are_read_again_too(self) -> None:
        terms = Term("b", 2), Term("a", 2)
        lists = Lists(3, (), terms, (StoreMark("c", 5, 7),), terms[:1], terms[::-1])
        self.declare("0", lists=lists)
        self.view.start()
        self.run_for(0.5)
        self.assertEqual((self.view.units, self.view.overtaken), ({}, {("T", "0"): lists}))
        self.view.read_again()
        self.assertEqual(self.view.overtaken, {})
        self.run_for(0.5)
        self.assertEqual(self.view.overtaken, {("T", "0"): lists})

    def test_nodes_that_are_no_brokers_are_passed_over(self) -> None:
        self.declare("0", groups=("a",))
        self.join("a", 0)
        self.commit(*[Create(f"{members_path('a')}/{name}", b"{}") for name in ("notes", "-1", "\u0661")])
        self.view.start()
        self.run_for(0.5)
        self.assertEqual(self.view.members, {"a": {0: BrokerMember("a:0")}})
        self.assertEqual((self.view.is_complete, self.view.problems), (True, {}))

    def test_stopped_it_follows_nothing(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        self.view.stop()
        self.units.clear()
        self.commit(Put(unit_path("T", "0"), encode_lists(Lists(3)), None))
        self.assertEqual(self.units, [])

    def test_what_is_read_when_it_is_stopped_is_not_told(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        read: defer.Deferred[Any] = defer.Deferred()
        self.view._followed[unit_path("T", "0")].read = lambda path: read
        self.commit(Put(unit_path("T", "0"), encode_lists(Lists(3)), None))
        self.view.stop()
        self.units.clear()
        read.callback(None)
        self.assertEqual((self.units, self.view.units), ([], {("T", "0"): Lists()}))


class ProblemTests(ViewCase):
    def test_documents_that_make_no_sense_are_named_and_do_not_count(self) -> None:
        self.declare("0", "1")
        self.view.start()
        self.run_for(0.5)
        self.units.clear()
        self.commit(Put(unit_path("T", "0"), b"{}", None))
        self.assertEqual(
            self.view.problem_of("T", "0"),
            "/topics/T/0: epoch: is missing, it must be a number of at least 0, got null",
        )
        self.assertIsNone(self.view.problem_of("T", "1"))
        self.assertEqual((self.units, sorted(self.view.units)), ([("T", "0")], [("T", "1")]))
        self.commit(Put(topic_path("T"), b'{"queues":0,"groups":["a"],"together":false}', None))
        self.assertIn("/topics/T: queues: must be 1 to 65535 queues", self.view.problem_of("T", "1") or "")
        self.assertEqual(self.view.units, {})
        self.commit(Put(topic_path("T"), encode_topic(OrderedTopic("T", 2, ("a",))), None))
        self.commit(Put(unit_path("T", "0"), encode_lists(Lists()), None))
        self.assertIsNone(self.view.problem_of("T", "0"))
        self.assertEqual(self.view.problems, {})

    def test_epoch_that_a_hand_took_back_does_not_count(self) -> None:
        """Sends that a later epoch fenced off would be accepted again."""
        self.declare("0", lists=Lists(5, ("a",), (Term("a", 5),)))
        self.view.start()
        self.run_for(0.5)
        self.commit(Put(unit_path("T", "0"), encode_lists(Lists(4, ("b",), (Term("b", 4),))), None))
        self.assertEqual(self.view.problem_of("T", "0"), "/topics/T/0: epoch: must not be lower than 5, got 4")
        self.assertEqual(self.view.units, {})
        mended = Lists(6, ("b",), (Term("b", 6),), led=(Term("b", 6),))
        self.commit(Put(unit_path("T", "0"), encode_lists(mended), None))
        self.assertEqual((self.view.units["T", "0"], self.view.problems), (mended, {}))

    def test_lists_of_the_first_epoch_count_however_often_they_were_written(self) -> None:
        self.declare("0", lists=Lists())
        self.commit(Put(unit_path("T", "0"), encode_lists(Lists()), None))
        self.view.start()
        self.run_for(0.5)
        self.assertEqual((self.view.units, self.view.problems), ({("T", "0"): Lists()}, {}))

    def test_what_is_left_is_watched_no_more(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        before = set(self.coordinator._told.paths)
        self.assertIn(unit_path("T", "0"), before)
        self.commit(Delete(unit_path("T", "0")), Delete(topic_path("T")))
        self.assertEqual(before - set(self.coordinator._told.paths), {unit_path("T", "0"), topic_path("T")})

    def test_node_that_may_not_be_read_is_a_problem_of_its_own(self) -> None:
        self.declare("0")
        read = self.coordinator.read

        def refuse(path: str) -> Any:
            return defer.fail(NotAllowed(f"{path}: no")) if path == unit_path("T", "0") else read(path)

        self.coordinator.read = refuse  # type: ignore[method-assign]
        before = self.others
        self.view.start()
        self.run_for(0.5)
        self.assertIn("/topics/T/0: no", self.view.problems[unit_path("T", "0")])
        self.assertGreater(self.others, before)

    def test_node_that_may_not_be_read_any_more_is_told(self) -> None:
        self.declare("0")
        self.view.start()
        self.run_for(0.5)
        path = unit_path("T", "0")
        self.view._followed[path].read = lambda _: defer.fail(NotAllowed("no"))
        before = self.others
        self.commit(Put(path, encode_lists(Lists(3)), None))
        self.assertEqual((self.others - before, self.view.problem_of("T", "0")), (1, "/topics/T/0: no"))

    def test_member_that_leaves_is_told(self) -> None:
        self.declare("0")
        self.join("a", 0, 1)
        self.view.start()
        self.run_for(0.5)
        before = self.others
        self.commit(Delete(member_path("a", 1)))
        self.assertGreater(self.others, before)

    def test_member_that_leaves_is_watched_no_more_and_its_problem_is_forgotten(self) -> None:
        self.declare("0")
        self.join("a", 0, 1)
        self.view.start()
        self.run_for(0.5)
        path = member_path("a", 1)
        self.commit(Put(path, b"nonsense", None))
        self.assertIn(path, self.view.problems)
        self.commit(Delete(path))
        self.assertEqual((self.view.problems, path in self.coordinator._told.paths), ({}, False))
        self.assertIn(member_path("a", 0), self.coordinator._told.paths)
        self.join("a", 1)
        self.assertEqual(self.view.members["a"], {0: BrokerMember("a:0"), 1: BrokerMember("a:1")})

    def test_topic_that_is_declared_anew_counts_its_epochs_anew(self) -> None:
        self.declare("0", lists=Lists(5, ("a",), (Term("a", 5),)))
        self.view.start()
        self.run_for(0.5)
        self.do(take_back(self.operator, "T"))
        self.declare("0")
        self.commit(Put(unit_path("T", "0"), encode_lists(Lists(1, ("a",), (Term("a", 1),))), None))
        self.assertEqual((self.view.units["T", "0"].epoch, self.view.problems), (1, {}))

    def test_topic_that_is_declared_anew_meanwhile_counts_its_epochs_anew(self) -> None:
        self.declare("0", lists=Lists(5, ("a",), (Term("a", 5),)))
        self.view.start()
        self.run_for(0.5)
        self.coordinator.link.cut()
        self.run_for(0.2)
        self.coordinator.expire()
        self.do(take_back(self.operator, "T"))
        self.declare("0")
        self.coordinator.link.heal()
        self.clock.advance(0.05)
        self.run_for(3)
        self.assertEqual((self.view.units, self.view.problems), ({("T", "0"): Lists()}, {}))

    def test_what_is_not_declared_says_how_to_declare_it(self) -> None:
        self.view.start()
        self.run_for(0.5)
        self.assertEqual(self.view.problem_of("T", "0"), "/topics/T is missing: declare the topic with mq order create")
        self.declare("0")
        self.assertEqual(
            self.view.problem_of("T", "5"), "/topics/T/5 is missing: declare the topic again with mq order create"
        )


class ChangeTests(ViewCase):
    def change(self, event: Any, also: Any = (), **faults: str) -> Lists:
        lists = self.do(change(self.coordinator, "T", "0", event, faults.get, also))
        assert isinstance(lists, Lists)
        return lists

    def test_event_is_written(self) -> None:
        self.declare("0")
        self.join("a", 0, 1)
        self.assertEqual(self.change(Ready("a")), Lists(1, ("a",), (Term("a", 1),), led=(Term("a", 1),)))
        self.assertEqual(self.change(Ready("a")), Lists(1, ("a",), (Term("a", 1),), led=(Term("a", 1),)))
        node = self.ensemble.tree[unit_path("T", "0")]
        assert node is not None
        self.assertEqual(node.version, 1, "once")

    def test_group_whose_broker_is_gone_never_becomes_the_head_whatever_the_view_says(self) -> None:
        self.declare("0")
        self.join("a", 0)
        with self.assertRaises(Conflict):
            self.change(Ready("a"))
        with self.assertRaises(NotWell):
            self.change(Ready("a"), a="its slave is missing")

    def test_who_is_quicker_wins_and_the_other_goes_on_from_there(self) -> None:
        self.declare("0")
        for group in ("a", "b"):
            self.join(group, 0, 1)
        results: list[Any] = []
        for client, group in ((self.coordinator, "a"), (self.operator, "b")):
            defer.ensureDeferred(change(client, "T", "0", Ready(group), lambda _: None)).addBoth(results.append)
        self.run_for(1)
        self.assertEqual(results[-1], Lists(1, ("a", "b"), (Term("a", 1),), led=(Term("a", 1),)))

    def test_slave_says_nothing_while_its_masters_node_is_there(self) -> None:
        self.declare("0", lists=Lists(1, (), (Term("a", 1),), led=(Term("a", 1),)))
        self.join("a", 0, 1)
        with self.assertRaises(Conflict):
            self.change(Drained("a", 1), is_absent(member_path("a", 0)))
        self.commit(Delete(member_path("a", 0)))
        self.assertEqual(self.change(Drained("a", 1), is_absent(member_path("a", 0))), Lists(1, led=(Term("a", 1),)))
        self.assertIsNone(self.ensemble.tree[member_path("a", 0)])

    def test_reads_that_may_be_old_are_not_said_to_be_new(self) -> None:
        self.coordinator.link.cut()
        with self.assertRaises(NoAnswer):
            self.do(catch_up(self.coordinator))
        self.coordinator.link.heal()
        self.run_for(3)
        self.do(catch_up(self.coordinator))
        self.assertIsNone(self.ensemble.tree[CATCHING_UP])

    def test_topic_that_is_not_declared(self) -> None:
        with self.assertRaisesRegex(Conflict, "/topics/T/0 is missing"):
            self.change(Lost("a"))


class DeclaringTests(ViewCase):
    def test_topic_that_is_declared_again_has_its_new_groups_and_keeps_its_units(self) -> None:
        lists = Lists(1, ("a",), (Term("a", 1),), led=(Term("a", 1),))
        self.declare("0", groups=("a",), lists=lists)
        self.view.start()
        self.run_for(0.5)
        wanted = OrderedTopic("T", 2, ("a", "b"))
        self.do(declare(self.operator, wanted))
        self.run_for(0.5)
        self.assertEqual(self.view.topics, {"T": wanted})
        self.assertEqual(self.view.units, {("T", "0"): lists, ("T", "1"): Lists()})


TOPIC = OrderedTopic("T", 2, ("a", "b"))


class Following(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.ensemble = MemoryEnsemble(self.clock)

    def run_to_end(self, work: Any) -> Any:
        started = work if isinstance(work, defer.Deferred) else defer.Deferred.fromCoroutine(work)
        self.clock.advance(0)
        return self.successResultOf(started)

    def coordinator(self) -> ICoordinator:
        coordinator = self.ensemble.coordinator()
        self.run_to_end(coordinator.start())
        self.addCleanup(lambda: self.run_to_end(coordinator.stop()))
        return coordinator

    def test_topics_come_and_go_also_where_there_was_none_at_first(self) -> None:
        operator, told = self.coordinator(), []
        view = OrderView(self.coordinator(), lambda topic, unit: told.append(unit), lambda: None)
        view.start()
        self.addCleanup(view.stop)
        self.clock.advance(0)
        self.assertEqual((view.is_complete, view.topics), (True, {}))
        self.run_to_end(declare(operator, TOPIC))
        self.clock.advance(0)
        self.assertEqual(view.topics, {"T": TOPIC})
        self.assertEqual(view.units, {("T", "0"): Lists(), ("T", "1"): Lists()})
        self.assertEqual(sorted(told), ["0", "1"])
        self.assertTrue(view.is_complete)
        self.run_to_end(take_back(operator, "T"))
        self.clock.advance(0)
        self.assertEqual((view.topics, view.units), ({}, {}))
