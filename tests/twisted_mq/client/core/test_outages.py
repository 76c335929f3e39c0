"""Outages: one line when a broker goes, one when it is back, and consumption that goes on within a second."""

from __future__ import annotations

import itertools
import logging

from tests.twisted_mq.client.consuming.test_push_consumer import ConsumerCase
from twisted_mq.client import PushConsumer
from twisted_mq.client.core.outages import PART, SOONEST_SECONDS, Outages
from twisted_mq.protocol.codes import RequestCode


class OneOutage(ConsumerCase):
    def setUp(self) -> None:
        super().setUp()
        self.lines: list[str] = []
        handler = logging.Handler(logging.INFO)
        handler.emit = lambda record: self.lines.append(record.getMessage())  # type: ignore[method-assign]
        log = logging.getLogger("twisted_mq")
        log.addHandler(handler)
        self.addCleanup(log.removeHandler, handler)

    def consuming(self) -> PushConsumer:
        consumer = self.started()
        self.advance(1)
        self.lines.clear()
        return consumer

    def back(self) -> None:
        self.cluster.network.listen(self.broker.address, self.broker.factory)

    def warned(self) -> list[str]:
        return [line for line in self.lines if "eached" in line or "failed" in line or "not " in line]

    def test_it_has_two_lines_and_messages_come_within_a_second_of_its_end(self) -> None:
        self.consuming()
        for seconds in (3, 10, 45):
            self.lines.clear()
            self.cluster.kill(self.broker.name)
            self.advance(seconds)
            self.back()
            self.broker.put("T", 0, b"%d" % seconds)
            self.advance(1)
            self.assertEqual(self.seen["c1"][-1], b"%d" % seconds)
            first, last = self.warned()
            self.assertIn(f"not reached, retrying: {self.broker.address}", first)
            self.assertRegex(last, rf"reached again: {self.broker.address} after \d+\.\d s")

    def test_a_broker_that_left_the_routes_is_found_soon_after_its_return(self) -> None:
        self.consuming()
        self.broker.put("T", 0, b"first")
        self.advance(6)  # its offset is committed
        routes = dict(self.cluster.routes)
        self.cluster.kill(self.broker.name)
        self.cluster.routes.clear()
        self.cluster.add_broker("broker-z", {"T": 1})
        self.advance(10)
        self.cluster.routes.update(routes)
        self.back()
        self.broker.put("T", 0, b"again")
        self.advance(2)
        self.assertEqual(self.seen["c1"], [b"first", b"again"])

    def test_it_ends_with_the_client(self) -> None:
        consumer = self.consuming()
        self.cluster.kill(self.broker.name)
        self.advance(3)
        self.run_to_end(consumer.stop())
        self.assert_no_timers()


class Asking(ConsumerCase):
    def test_it_asks_each_half_second_first_and_as_seldom_as_usual_after_half_an_hour(self) -> None:
        asked: list[float] = []
        began = self.clock.seconds()
        outages = Outages(self.clock, lambda: asked.append(self.clock.seconds() - began), 30.0)
        outages.begin("a", "gone")
        self.advance(4000, step=0.25)
        self.assertEqual(asked[:3], [SOONEST_SECONDS, 2 * SOONEST_SECONDS, 3 * SOONEST_SECONDS])
        waits = [later - sooner for sooner, later in itertools.pairwise(asked)]
        self.assertTrue(
            all(wait <= max(SOONEST_SECONDS, at / PART) + 0.5 for at, wait in zip(asked, waits, strict=False))
        )
        self.assertTrue(1700 < asked[-1] < 1900, asked[-1])
        self.assertEqual((outages.end("a"), outages.end("a")), (True, False))
        self.assert_no_timers()

    def test_the_name_servers_are_asked_no_more_once_it_is_over(self) -> None:
        self.started()
        server = self.cluster.name_servers[0]
        self.cluster.kill(self.broker.name)
        self.advance(5)
        self.cluster.network.listen(self.broker.address, self.broker.factory)
        self.advance(2)
        server.asked.clear()
        self.advance(10)
        self.assertEqual([code for code, _ in server.asked if code == RequestCode.GET_ROUTEINFO_BY_TOPIC], [])
