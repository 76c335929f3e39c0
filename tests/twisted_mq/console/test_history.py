"""A day of figures: bounded, evenly left out, without samples where the cluster does not answer."""

from __future__ import annotations

import itertools

from twisted.internet.defer import Deferred, ensureDeferred
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.admin.calls import NoNameServer
from twisted_mq.admin.figures import BrokerFigures
from twisted_mq.console.history import EVERY_SECONDS, KEPT, MOST_SHOWN, History, Sample, Values, only_of

STEP_MS = int(EVERY_SECONDS * 1000)


class HistoryTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.now_ms = 0
        self.failure: Exception | None = None
        self.history = History(self.ask, lambda: self.now_ms)

    async def ask(self) -> list[BrokerFigures]:
        if self.failure is not None:
            raise self.failure
        figures = {"putTps": f"{self.now_ms} 0 0", "commitLogDiskRatio": "0.25"}
        return [BrokerFigures("C", "b", 0, "127.0.0.1:1", figures)]

    def take(self, times: int = 1) -> None:
        for _ in range(times):
            self.successResultOf(ensureDeferred(self.history.take()))
            self.now_ms += STEP_MS

    def test_samples_have_what_brokers_told_then(self) -> None:
        self.take(2)
        found = [(one.time_ms, one.brokers[0].in_rate, one.brokers[0].disk_ratio) for one in self.history.since(0)]
        self.assertEqual(found, [(0, 0.0, 0.25), (STEP_MS, STEP_MS, 0.25)])
        self.assertEqual(len(self.history.since(STEP_MS)), 1)

    def test_a_day_is_kept_and_a_page_gets_even_parts_of_it_with_the_newest(self) -> None:
        self.take(KEPT + 100)
        found = [one.time_ms for one in self.history.since(0)]
        self.assertEqual(len(found), MOST_SHOWN)
        self.assertEqual(found[-1], (KEPT + 99) * STEP_MS)
        self.assertEqual({later - earlier for earlier, later in itertools.pairwise(found)}, {6 * STEP_MS})
        self.assertEqual(len(self.history.since(self.now_ms - 10 * STEP_MS)), 10)

    def test_no_sample_is_made_up_where_the_cluster_does_not_answer(self) -> None:
        self.failure = NoNameServer(["127.0.0.1:1"], {})
        self.take(3)
        self.assertEqual(self.history.since(0), [])
        self.failure = None
        self.take()
        self.assertEqual(len(self.history.since(0)), 1)

    def test_values_of_other_brokers_are_left_out(self) -> None:
        mine, other = Values("C", "b", 0, 1.0, 1.0, 0.5), Values("C", "b", 1, 2.0, 2.0, 0.5)
        found = only_of([Sample(5, (mine, other)), Sample(6, (other,))], [BrokerFigures("C", "b", 0, "127.0.0.1:1")])
        self.assertEqual(found, [Sample(5, (mine,)), Sample(6, ())])

    def test_a_slow_answer_is_not_overtaken(self) -> None:
        waiting: Deferred[list[BrokerFigures]] = Deferred()

        async def slowly() -> list[BrokerFigures]:
            return await waiting

        history = History(slowly, lambda: 0)
        first = ensureDeferred(history.take())
        self.successResultOf(ensureDeferred(history.take()))
        waiting.callback([])
        self.successResultOf(first)
        self.assertEqual(len(history.since(0)), 1)
