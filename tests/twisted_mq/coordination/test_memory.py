"""The twin in memory: the contract of all coordinators, and its own faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase
from zope.interface.verify import verifyObject

from tests.twisted_mq.coordination.contract import (
    CONNECTED,
    DISCONNECTED,
    LOST,
    CoordinatorContract,
    Hooks,
    events_of,
)
from twisted_mq.coordination.election import Candidate
from twisted_mq.coordination.interfaces import Create, ICoordinator, NoAnswer, Node, Put
from twisted_mq.coordination.memory import MemoryCoordinator, MemoryEnsemble

STEP = 0.01
STEPS = 10_000


class VirtualCase(TestCase, Hooks):
    def setUp(self) -> None:
        self.clock = Clock()
        self.ensemble = MemoryEnsemble(self.clock)
        self.ensemble.apply([Create("/mq")], 0)

    def coordinator(self, chroot: str = "/mq", **options: Any) -> MemoryCoordinator:
        coordinator = self.ensemble.coordinator(chroot=chroot, session_seconds=2.0, **options)
        verifyObject(ICoordinator, coordinator)
        return coordinator

    def unreachable(self) -> ICoordinator:
        coordinator = self.coordinator()
        coordinator.link.cut()
        return coordinator

    async def wait(self, waited: Awaitable[Any]) -> Any:
        deferred = defer.ensureDeferred(waited)
        await self.until(lambda: deferred.called)
        return await deferred

    async def until(self, promise: Callable[[], object]) -> None:
        for _ in range(STEPS):
            if promise():
                return
            self.clock.advance(STEP)
        self.fail(f"not within {STEP * STEPS} virtual seconds")

    async def pass_seconds(self, seconds: float) -> None:
        self.clock.pump([STEP] * round(seconds / STEP))

    async def expire(self, coordinator: ICoordinator) -> None:
        coordinator.expire()

    def cut(self, coordinator: ICoordinator) -> None:
        coordinator.link.cut()

    def heal(self, coordinator: ICoordinator) -> None:
        coordinator.link.heal()


class MemoryContractCase(VirtualCase, CoordinatorContract):
    pass


class DelayedContractCase(MemoryContractCase):
    """The same where everything takes its time."""

    def coordinator(self, chroot: str = "/mq", **options: Any) -> MemoryCoordinator:
        coordinator = super().coordinator(chroot, **options)
        coordinator.link.requests.delay, coordinator.link.answers.delay = 0.05, 0.11
        coordinator.link.events.delay = 0.3
        return coordinator


class SilentContractCase(MemoryContractCase):
    """The same where a cut shows in nothing but missing answers."""

    def cut(self, coordinator: ICoordinator) -> None:
        coordinator.link.cut(silently=True)


class FaultsCase(VirtualCase):
    async def test_a_commit_whose_answer_is_dropped_happened(self) -> None:
        one = await self.started()
        told = events_of(one)
        one.link.drop_answer()
        await self.fails(NoAnswer, one.commit([Create("/a", b"1")]))
        await self.until(lambda: told == [DISCONNECTED, CONNECTED])
        self.assertEqual(await self.wait(one.read("/a")), Node(b"1", 0))
        await self.wait(one.commit([Put("/a", b"2", 0)]))

    async def test_a_candidate_whose_answer_was_lost_stands_once(self) -> None:
        one = await self.started()
        await self.wait(one.commit([Create("/e")]))
        one.link.drop_answer()
        leads: list[int] = []
        candidate = Candidate(one, "/e", leads=leads.append, lost=list)
        candidate.start()
        await self.until(lambda: leads)
        self.assertEqual(len(await self.wait(one.children("/e"))), 1)

    async def test_a_paused_client_holds_nothing_when_it_goes_on(self) -> None:
        one, other = await self.started(), await self.started()
        await self.wait(one.commit([Create("/e", ephemeral=True)]))
        told = events_of(one)
        one.link.pause()
        await self.pass_seconds(2.5)
        self.assertIsNone(await self.wait(other.read("/e")))
        self.assertEqual((one.holds(), told), (False, []))
        one.link.resume()
        self.assertFalse(one.holds())
        await self.until(lambda: CONNECTED in told)
        self.assertEqual(told, [LOST, CONNECTED])
        self.assertTrue(one.holds())

    async def test_a_lease_is_reckoned_from_the_question_not_the_answer(self) -> None:
        now = [0.0]
        one = self.coordinator(monotonic=lambda: now[0])
        await self.wait(one.start())
        now[0] = 0.999
        self.assertTrue(one.holds())
        now[0] = 1.0
        self.assertFalse(one.holds())
        one.link.answers.delay = 0.3
        now[0] = 5.0
        await self.until(lambda: one._unanswered == 1)
        now[0] = 5.9
        await self.until(one.holds)
        now[0] = 6.0
        self.assertFalse(one.holds())

    async def test_no_session_ends_while_the_servers_are_gone(self) -> None:
        one, other = await self.started(), await self.started()
        await self.wait(one.commit([Create("/e", ephemeral=True)]))
        told, session = events_of(one), one.session_id
        self.ensemble.stop()
        await self.pass_seconds(60)
        self.assertEqual((told, one.session_id, one.holds()), ([DISCONNECTED], session, False))
        self.ensemble.start()
        await self.until(lambda: CONNECTED in told)
        self.assertEqual((told, one.session_id), ([DISCONNECTED, CONNECTED], session))
        await self.until(lambda: other.holds())
        self.assertEqual(await self.wait(other.read("/e")), Node(b"", 0, session))

    async def test_a_clock_that_jumps_ends_no_session(self) -> None:
        now = [0.0]
        self.ensemble = MemoryEnsemble(self.clock, monotonic=lambda: now[0])
        one = self.coordinator("")
        await self.wait(one.start())
        told = events_of(one)
        self.clock.advance(3600)
        await self.pass_seconds(0.1)
        self.assertEqual((told, one.holds()), ([], True))
        one.link.cut(silently=True)
        now[0] = 2.1
        await self.pass_seconds(3)
        self.assertNotIn(one.session_id, self.ensemble.sessions)

    async def test_late_events_come_in_order_and_after_answers(self) -> None:
        one, other = await self.started(), await self.started()
        read: list[Node | None] = []
        one.link.events.delay = 1.0
        one.watch("/a", lambda: one.read("/a").addCallback(read.append))
        await self.until(lambda: read == [None])
        await self.wait(other.commit([Create("/a")]))
        self.assertEqual(await self.wait(one.read("/a")), Node(b"", 0))
        self.assertEqual(read, [None])
        await self.until(lambda: read == [None, Node(b"", 0)])

    async def test_a_stopped_client_leaves_no_timer(self) -> None:
        one = await self.started()
        await self.wait(one.stop())
        await self.pass_seconds(0.1)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_a_client_stopped_while_it_starts_fails_the_start(self) -> None:
        one = self.unreachable()
        starting = one.start()
        await self.wait(one.stop())
        await self.fails(Exception, starting)
        await self.pass_seconds(0.1)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_the_same_faults_make_the_same_history(self) -> None:
        histories = [await self._history(), await self._history()]
        self.assertEqual(histories[0], histories[1])

    async def _history(self) -> list[object]:
        self.setUp()
        one = await self.started()
        history: list[object] = []
        one.listen(lambda event: history.append((self.clock.seconds(), event, one.session_id)))
        one.link.cut()
        await self.pass_seconds(3)
        one.link.heal()
        await self.until(lambda: len(history) == 3)
        return history
