"""Contract of every coordinator. A trial TestCase mixes it in, and implements how to create one and break it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet import defer

from twisted_mq.coordination.election import Candidate, leader_of
from twisted_mq.coordination.interfaces import (
    MAX_COMMIT_BYTES,
    Check,
    Conflict,
    Create,
    Delete,
    ICoordinator,
    NoAnswer,
    Node,
    NotAllowed,
    Put,
    SessionEvent,
    SessionLost,
)
from twisted_mq.coordination.nodes import make_paths

CONNECTED, DISCONNECTED, LOST = SessionEvent.CONNECTED, SessionEvent.DISCONNECTED, SessionEvent.LOST


class Hooks:
    """Methods of an implementation's TestCase. It stops the coordinators that it created."""

    def coordinator(self, chroot: str = "/mq") -> ICoordinator:
        """A client, not started. `/mq` is there and empty, `/other` is missing."""
        raise NotImplementedError

    def unreachable(self) -> ICoordinator:
        """A client of a server that does not answer."""
        raise NotImplementedError

    async def wait(self, waited: Awaitable[Any]) -> Any:
        """Return the result; time passes in between."""
        raise NotImplementedError

    async def until(self, promise: Callable[[], object]) -> None:
        """Let time pass until the promise is true."""
        raise NotImplementedError

    async def pass_seconds(self, seconds: float) -> None:
        """Let so much time pass."""
        raise NotImplementedError

    async def expire(self, coordinator: ICoordinator) -> None:
        """Have the server end the session, without its client's doing."""
        raise NotImplementedError

    def cut(self, coordinator: ICoordinator) -> None:
        """Nothing gets through between the client and the server; the client can notice."""
        raise NotImplementedError

    def heal(self, coordinator: ICoordinator) -> None:
        """Ends `cut`."""
        raise NotImplementedError

    async def started(self, chroot: str = "/mq") -> ICoordinator:
        coordinator = self.coordinator(chroot)
        await self.wait(coordinator.start())
        return coordinator

    async def fails(self, kind: type[Exception], waited: defer.Deferred[Any]) -> str:
        """The text of the failure, which is of this kind."""
        with self.assertRaises(kind) as caught:  # type: ignore[attr-defined]
            await self.wait(waited)
        return str(caught.exception)


def events_of(coordinator: ICoordinator) -> list[SessionEvent]:
    told: list[SessionEvent] = []
    coordinator.listen(told.append)
    return told


class NodesContract(Hooks):
    """Reads and changes."""

    async def test_a_node_is_read_as_it_was_written(self) -> None:
        one = await self.started()
        self.assertEqual(await self.wait(one.commit([Create("/a", b"first")])), ("/a",))
        self.assertEqual(await self.wait(one.read("/a")), Node(b"first", 0))
        self.assertEqual(await self.wait(one.commit([Put("/a", b"", 0)])), ())
        self.assertEqual(await self.wait(one.read("/a")), Node(b"", 1))
        await self.wait(one.commit([Put("/a", b"\x00\xff", None)]))
        self.assertEqual(await self.wait(one.read("/a")), Node(b"\x00\xff", 2))
        await self.wait(one.commit([Delete("/a", 2)]))
        self.assertIsNone(await self.wait(one.read("/a")))

    async def test_children_are_sorted_names(self) -> None:
        one = await self.started()
        await self.wait(one.commit([Create(path) for path in ("/t", "/t/b", "/t/a", "/t/a/deep", "/t/ä b")]))
        self.assertEqual(await self.wait(one.children("/t")), ("a", "b", "ä b"))
        self.assertEqual(await self.wait(one.children("/t/b")), ())
        self.assertEqual(await self.wait(one.children("/missing")), ())
        self.assertEqual(await self.wait(one.children("/")), ("t",))

    async def test_all_is_done_or_nothing(self) -> None:
        one = await self.started()
        await self.wait(one.commit([Create("/a", b"0"), Create("/a/child"), Create("/b", ephemeral=True)]))
        refused = {
            "version": Put("/a", b"1", 5),
            "old version": Delete("/b", 7),
            "missing": Put("/none", b"", 0),
            "deleting what is missing": Delete("/none"),
            "there": Create("/a"),
            "no parent": Create("/none/child"),
            "children": Delete("/a"),
            "ephemeral parent": Create("/b/child"),
            "check of a version": Check("/a", 3),
            "check of what is missing": Check("/none"),
        }
        for name, operation in refused.items():
            with self.subTest(name):
                before = [Put("/a", b"changed", 0), Create("/new"), Delete("/a/child"), Create("/a/child")]
                await self.fails(Conflict, one.commit([*before, operation, Create("/last")]))
                await self.fails(Conflict, one.commit([operation]))
        self.assertEqual(await self.wait(one.read("/a")), Node(b"0", 0))
        self.assertEqual(await self.wait(one.children("/")), ("a", "b"))

    async def test_a_change_sees_those_before_it_in_the_same_commit(self) -> None:
        one = await self.started()
        operations = [
            Create("/a"),
            Check("/a", 0),
            Put("/a", b"1", 0),
            Check("/a", 1),
            Create("/a/b"),
            Delete("/a/b", 0),
        ]
        self.assertEqual(await self.wait(one.commit(operations)), ("/a", "/a/b"))
        self.assertEqual(await self.wait(one.read("/a")), Node(b"1", 1))
        self.assertEqual(await self.wait(one.commit([])), ())

    async def test_numbers_of_sequential_nodes_rise_whatever_was_deleted(self) -> None:
        one = await self.started()
        await self.wait(one.commit([Create("/s")]))
        new = Create("/s/n-", b"data", sequential=True)
        first, second = await self.wait(one.commit([new, new]))
        await self.wait(one.commit([Delete(second)]))
        (third,) = await self.wait(one.commit([new]))
        for path in (first, second, third):
            self.assertRegex(path, r"^/s/n-\d{10}$")
        self.assertLess(first, second)
        self.assertLess(second, third)
        self.assertEqual(await self.wait(one.read(third)), Node(b"data", 0))

    async def test_one_of_two_changes_of_the_same_version_is_done(self) -> None:
        one, other = await self.started(), await self.started()
        await self.wait(one.commit([Create("/a")]))
        both = [one.commit([Put("/a", b"one", 0)]), other.commit([Put("/a", b"other", 0)])]
        outcomes = await self.wait(defer.DeferredList(both, consumeErrors=True))
        self.assertEqual(sorted(done for done, _ in outcomes), [False, True])
        (refused,) = (result.value for done, result in outcomes if not done)
        self.assertIsInstance(refused, Conflict)

    async def test_what_is_asked_one_after_the_other_is_done_so(self) -> None:
        one = await self.started()
        asked = [one.commit([Create("/a")]), one.read("/a"), one.commit([Put("/a", b"1", 0)]), one.read("/a")]
        self.assertTrue(all(not deferred.called for deferred in asked), "fired within the call")
        self.assertEqual([await self.wait(one) for one in asked], [("/a",), Node(b"", 0), (), Node(b"1", 1)])

    async def test_what_makes_no_sense_is_refused_at_once(self) -> None:
        one = await self.started()
        for path in ("", "a", "/a/", "//", "/a//b", "/a/../b", "/.", "/\x00", "/\ud800"):
            for ask in (
                one.read,
                one.children,
                lambda path: one.watch(path, list),
                lambda path: one.commit([Delete(path)]),
            ):
                with self.assertRaises(ValueError):
                    ask(path)
        with self.assertRaises(ValueError):
            one.commit([Create("/a", bytes(MAX_COMMIT_BYTES))])
        await self.wait(one.commit([Create("/a", bytes(MAX_COMMIT_BYTES - 2))]))
        self.assertEqual(await self.wait(one.read("/a")), Node(bytes(MAX_COMMIT_BYTES - 2), 0))

    async def test_clients_with_other_chroots_see_other_trees(self) -> None:
        above, below = await self.started(""), await self.started("/mq")
        self.assertEqual(await self.wait(above.commit([Create("/mq/a", b"1")])), ("/mq/a",))
        self.assertEqual(await self.wait(below.read("/a")), Node(b"1", 0))
        self.assertEqual(await self.wait(below.commit([Create("/a/s", sequential=True)])), ("/a/s0000000000",))
        self.assertEqual(await self.wait(above.children("/mq/a")), ("s0000000000",))

    async def test_missing_nodes_are_made_with_their_parents_by_many_at_once(self) -> None:
        one, other = await self.started(), await self.started()
        makers = [defer.Deferred.fromCoroutine(make_paths(each, ["/x/y/z", "/x/w"])) for each in (one, other)]
        await self.wait(defer.gatherResults(makers))
        self.assertEqual(await self.wait(one.children("/x")), ("w", "y"))
        self.assertEqual(await self.wait(other.children("/x/y")), ("z",))


class WatchesContract(Hooks):
    """Callbacks about nodes."""

    async def told_after(self, count: list[int], ask: Callable[[], defer.Deferred[Any]]) -> None:
        before = count[0]
        await self.wait(ask())
        await self.until(lambda: count[0] > before)

    async def test_a_watch_is_told_once_it_stands_and_of_each_change(self) -> None:
        one, other = await self.started(), await self.started()
        count = [0]

        def changed() -> None:
            count[0] += 1

        one.watch("/a", changed)
        self.assertEqual(count, [0])
        await self.until(lambda: count[0] == 1)
        for operation in (
            Create("/a"),
            Put("/a", b"1", 0),
            Create("/a/child"),
            Delete("/a/child"),
            Put("/a", b"1", 1),
            Delete("/a"),
            Create("/a", ephemeral=True),
        ):
            await self.told_after(count, lambda operation=operation: other.commit([operation]))
        await self.told_after(count, lambda: one.commit([Put("/a", b"own", 0)]))
        await self.told_after(count, other.stop)
        self.assertIsNone(await self.wait(one.read("/a")))

    async def test_an_ended_watch_is_told_of_nothing_and_others_are(self) -> None:
        one = await self.started()
        told: list[str] = []
        end_first = one.watch("/a", lambda: told.append("first"))
        one.watch("/a", lambda: told.append("second"))
        one.watch("/b", lambda: told.append("b"))
        await self.until(lambda: sorted(set(told)) == ["b", "first", "second"])
        end_first()
        end_first()
        told.clear()
        await self.wait(one.commit([Create("/a"), Create("/b"), Create("/a/s", sequential=True)]))
        await self.until(lambda: sorted(set(told)) == ["b", "second"])

    async def test_a_watch_can_begin_again_after_its_end(self) -> None:
        one = await self.started()
        told: list[int] = []
        end = one.watch("/a", lambda: told.append(1))
        await self.until(lambda: told == [1])
        end()
        one.watch("/a", lambda: told.append(2))
        await self.until(lambda: told == [1, 2])
        await self.wait(one.commit([Create("/a")]))
        await self.until(lambda: told[:3] == [1, 2, 2])

    async def test_a_watch_before_the_start_stands_after_it(self) -> None:
        one = self.coordinator()
        told: list[int] = []
        one.watch("/a", lambda: told.append(1))
        await self.wait(one.start())
        await self.until(lambda: told)
        told.clear()
        await self.wait(one.commit([Create("/a")]))
        await self.until(lambda: told)

    async def test_one_callback_that_fails_does_not_keep_others_from_being_told(self) -> None:
        one = await self.started()
        told: list[int] = []

        def fail() -> None:
            raise KeyError("bad callback")

        with self.assertLogs("twisted_mq.coordination.told", "CRITICAL") as logged:
            one.watch("/a", fail)
            one.watch("/a", lambda: told.append(1))
            await self.until(lambda: told)
        self.assertIn("bad callback", str(logged.records[0].exc_info))


class SessionContract(Hooks):
    """Sessions, and faults."""

    async def test_a_session_begins_with_the_start_and_ends_with_the_stop(self) -> None:
        one = self.coordinator()
        told = events_of(one)
        self.assertEqual((one.session_id, one.holds()), (0, False))
        await self.fails(SessionLost, one.read("/"))
        await self.wait(one.start())
        self.assertNotEqual(one.session_id, 0)
        self.assertTrue(one.holds())
        self.assertEqual(told, [CONNECTED])
        await self.wait(one.stop())
        await self.wait(one.stop())
        self.assertEqual((one.session_id, one.holds()), (0, False))
        await self.fails(SessionLost, one.commit([Create("/a")]))
        self.assertEqual(told, [CONNECTED])

    async def test_ephemeral_nodes_go_with_their_session(self) -> None:
        one, other = await self.started(), await self.started()
        await self.wait(one.commit([Create("/e", b"1", ephemeral=True), Create("/stays")]))
        self.assertEqual(await self.wait(other.read("/e")), Node(b"1", 0, one.session_id))
        await self.wait(one.stop())
        self.assertIsNone(await self.wait(other.read("/e")))
        self.assertEqual(await self.wait(other.read("/stays")), Node(b"", 0))

    async def test_after_a_lost_session_another_begins(self) -> None:
        one = await self.started()
        told, watched = events_of(one), [0]
        await self.wait(one.commit([Create("/e", ephemeral=True)]))
        one.watch("/e", lambda: watched.append(one.session_id))
        await self.until(lambda: len(watched) > 1)
        first = one.session_id
        await self.expire(one)
        await self.until(lambda: CONNECTED in told)
        self.assertEqual([event for event in told if event is not DISCONNECTED], [LOST, CONNECTED])
        self.assertNotIn(one.session_id, (0, first))
        await self.until(lambda: watched[-1] == one.session_id)
        self.assertIsNone(await self.wait(one.read("/e")))
        self.assertTrue(one.holds())

    async def test_between_two_sessions_nothing_holds_and_nothing_is_asked(self) -> None:
        one = await self.started()
        seen: list[Any] = []

        def event(event: SessionEvent) -> None:
            if event is LOST:
                seen.extend([one.session_id, one.holds(), one.commit([Create("/a")])])

        one.listen(event)
        await self.expire(one)
        await self.until(lambda: seen)
        self.assertEqual(seen[:2], [0, False])
        await self.fails(SessionLost, seen[2])

    async def test_without_a_connection_nothing_is_asked_and_soon_nothing_holds(self) -> None:
        one = await self.started()
        told = events_of(one)
        self.cut(one)
        await self.until(lambda: told)
        self.assertEqual(told, [DISCONNECTED])
        self.assertNotEqual(one.session_id, 0)
        await self.fails(NoAnswer, one.read("/"))
        await self.until(lambda: not one.holds())

    async def test_a_short_cut_leaves_the_session(self) -> None:
        one, other = await self.started(), await self.started()
        await self.wait(one.commit([Create("/e", ephemeral=True)]))
        told, watched, session = events_of(one), [], one.session_id
        one.watch("/new", lambda: watched.append(1))
        await self.until(lambda: watched)
        self.cut(one)
        await self.until(lambda: DISCONNECTED in told)
        await self.wait(other.commit([Create("/new")]))
        watched.clear()
        self.heal(one)
        await self.until(lambda: CONNECTED in told)
        self.assertEqual((told, one.session_id), ([DISCONNECTED, CONNECTED], session))
        self.assertTrue(one.holds())
        self.assertTrue(watched)
        self.assertEqual(await self.wait(one.children("/")), ("e", "new"))
        watched.clear()
        await self.wait(other.commit([Put("/new", b"", 0)]))
        await self.until(lambda: watched)

    async def test_a_long_cut_ends_the_session_long_after_it_last_held(self) -> None:
        one, other = await self.started(), await self.started()
        await self.wait(one.commit([Create("/e", ephemeral=True)]))
        told, gone = events_of(one), []
        held_when_gone: list[bool] = []

        def changed() -> None:
            other.read("/e").addCallback(lambda node: node or (gone.append(1), held_when_gone.append(one.holds())))

        other.watch("/e", changed)
        self.cut(one)
        await self.until(lambda: gone)
        self.assertEqual(held_when_gone[0], False)
        self.heal(one)
        await self.until(lambda: CONNECTED in told)
        self.assertEqual(told, [DISCONNECTED, LOST, CONNECTED])

    async def test_what_waits_for_its_answer_when_the_connection_breaks_has_none(self) -> None:
        one = await self.started()
        asked = one.commit([Create("/a")])
        self.cut(one)
        await self.fails(NoAnswer, asked)

    async def test_a_session_holds_as_long_as_nothing_fails(self) -> None:
        one = await self.started()
        told = events_of(one)
        answers = []
        for _ in range(8):
            await self.pass_seconds(one.session_seconds / 6)
            answers.append(one.holds())
        self.assertEqual((answers, told), ([True] * 8, []))

    async def test_a_chroot_that_is_missing_is_refused(self) -> None:
        one = self.coordinator("/other/deep")
        self.assertIn("/other/deep", await self.fails(NotAllowed, one.start()))
        self.assertEqual((one.session_id, one.holds()), (0, False))
        above = await self.started("")
        await self.wait(defer.Deferred.fromCoroutine(make_paths(above, ["/other/deep"])))
        await self.wait(one.start())
        self.assertEqual(await self.wait(one.children("/")), ())

    async def test_a_server_that_does_not_answer_fails_the_start(self) -> None:
        one = self.unreachable()
        await self.fails(NoAnswer, one.start())
        self.assertEqual((one.session_id, one.holds()), (0, False))


class ElectionContract(Hooks):
    """Candidates, on whatever coordinator."""

    PATH = "/leaders/T/0/producers/group"

    def candidate(self, coordinator: ICoordinator, name: str = "c") -> tuple[Candidate, list[str]]:
        told: list[str] = []
        candidate = Candidate(
            coordinator, self.PATH, leads=lambda term: told.append("leads"), lost=lambda: told.append("lost"), name=name
        )
        candidate.start()
        return candidate, told

    async def test_the_first_leads_and_the_next_follows_with_a_higher_term(self) -> None:
        one, other = await self.started(), await self.started()
        first, first_told = self.candidate(one)
        await self.until(lambda: first.is_leader)
        second, second_told = self.candidate(other)
        await self.until_candidates(one, 2)
        term = first.term
        self.assertEqual((first_told, second_told, second.term, second.is_leader), (["leads"], [], None, False))
        await self.wait(first.stop())
        await self.until(lambda: second.is_leader)
        self.assertGreater(second.term, term)
        self.assertEqual((first.is_leader, first_told, second_told), (False, ["leads"], ["leads"]))

    async def until_candidates(self, coordinator: ICoordinator, count: int) -> None:
        while len(await self.wait(coordinator.children(self.PATH))) < count:
            await self.pass_seconds(0.01)

    async def test_who_loses_the_session_leads_no_longer_and_stands_again_behind_the_others(self) -> None:
        one, other = await self.started(), await self.started()
        first, first_told = self.candidate(one)
        await self.until(lambda: first.is_leader)
        second, second_told = self.candidate(other)
        await self.until_candidates(other, 2)
        await self.expire(one)
        await self.until(lambda: second.is_leader)
        await self.until(lambda: first_told == ["leads", "lost"])
        await self.until_candidates(other, 2)
        await self.wait(second.stop())
        await self.until(lambda: first.is_leader)
        self.assertEqual((first_told, second_told), (["leads", "lost", "leads"], ["leads"]))

    async def test_candidates_of_one_session_stand_side_by_side(self) -> None:
        one = await self.started()
        first, _ = self.candidate(one, "first")
        await self.until(lambda: first.is_leader)
        _, told = self.candidate(one, "second")
        await self.until_candidates(one, 2)
        names = await self.wait(one.children(self.PATH))
        self.assertIn("-first-", leader_of(names))
        await self.wait(first.stop())
        await self.until(lambda: told == ["leads"])

    async def test_who_is_deleted_leads_no_longer(self) -> None:
        one, other = await self.started(), await self.started()
        first, told = self.candidate(one)
        await self.until(lambda: first.is_leader)
        term = first.term
        (name,) = await self.wait(other.children(self.PATH))
        await self.wait(other.commit([Delete(f"{self.PATH}/{name}")]))
        await self.until(lambda: told == ["leads", "lost", "leads"])
        self.assertGreater(first.term, term)

    async def test_a_leader_without_a_connection_knows_that_it_may_not_lead(self) -> None:
        one, other = await self.started(), await self.started()
        first, first_told = self.candidate(one)
        await self.until(lambda: first.is_leader)
        second, _ = self.candidate(other)
        await self.until_candidates(other, 2)
        self.cut(one)
        await self.until(lambda: second.is_leader)
        self.assertFalse(first.is_leader)
        self.heal(one)
        await self.until(lambda: first_told == ["leads", "lost"])

    async def test_a_candidate_stopped_at_once_leaves_no_node(self) -> None:
        one = await self.started()
        candidate, told = self.candidate(one)
        await self.wait(candidate.stop())
        await self.pass_seconds(one.session_seconds / 4)
        self.assertEqual(await self.wait(one.children(self.PATH)), ())
        self.assertEqual(told, [])


class CoordinatorContract(NodesContract, WatchesContract, SessionContract, ElectionContract):
    """All of it."""
