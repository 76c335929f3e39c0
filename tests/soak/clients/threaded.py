"""The load through the face of plain calls, by threads."""

from __future__ import annotations

import random
import time
from concurrent.futures import Future, ThreadPoolExecutor

from tests.soak.clients.ledger import KEYS, POLLING, STEADY, VISITOR
from tests.soak.clients.work import (
    CONSUMER_OPTIONS,
    DRAIN_SECONDS,
    PAUSE_SECONDS,
    PRODUCER_OPTIONS,
    SLOW_SECONDS,
    Work,
)
from twisted_mq.blocking import LitePullConsumer, Producer, PushConsumer
from twisted_mq.client import ConsumeContext, ConsumeStatus, RocketMQError
from twisted_mq.client.consuming.deliveries import DeliveryEnded
from twisted_mq.protocol.messages.message import MessageExt

THREADS = KEYS + 4
"""A sender for each key, visits, polls, and two that take."""


class BlockingLoad:
    """As AwaitedLoad: what stays iterates, what comes and goes has listeners."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ledger = work.ledger
        self._topics = {work.topic: "*"}
        self._ended = False

    def run(self, seconds: float) -> None:
        """For so long, and until all is consumed."""
        with ThreadPoolExecutor(THREADS) as pool, self._producer(STEADY) as producer:
            with self._steady() as consumer, self._poller() as poller:
                taking = [pool.submit(self._take, consumer), pool.submit(self._take, consumer)]
                taking.append(pool.submit(self._poll, poller))
                self._send_all(pool, producer, time.monotonic() + seconds)
                drained = time.monotonic() + DRAIN_SECONDS
                while self._ledger.missing and time.monotonic() < drained:
                    time.sleep(PAUSE_SECONDS)
                self._ended = True
            _results(taking)

    def _send_all(self, pool: ThreadPoolExecutor, producer: Producer, until: float) -> None:
        sending = [pool.submit(self._send, producer, key, until) for key in range(KEYS)]
        _results([*sending, pool.submit(self._visits, until)])

    def _producer(self, group: str) -> Producer:
        return Producer(self._work.namesrv, group=group, options=PRODUCER_OPTIONS)

    def _steady(self) -> PushConsumer:
        return PushConsumer(
            self._work.namesrv, group=self._work.group(STEADY), topics=self._topics, options=CONSUMER_OPTIONS
        )

    def _listening(self) -> PushConsumer:
        return PushConsumer(
            self._work.namesrv,
            group=self._work.group(STEADY),
            topics=self._topics,
            listener=self._on_messages,
            options=CONSUMER_OPTIONS,
        )

    def _poller(self) -> LitePullConsumer:
        return LitePullConsumer(
            self._work.namesrv, group=self._work.group(POLLING), topics=self._topics, options=CONSUMER_OPTIONS
        )

    def _send(self, producer: Producer, key: int, until: float) -> None:
        while time.monotonic() < until:
            self._send_one(producer, key)
            time.sleep(PAUSE_SECONDS)

    def _send_one(self, producer: Producer, key: int) -> None:
        sending = self._ledger.begin(key)
        try:
            self._ledger.end(sending, producer.send_by_key(sending.message, key))
        except RocketMQError as error:
            self._ledger.end(sending, error)

    def _visits(self, until: float) -> None:
        chance = random.Random(1)
        while time.monotonic() < until:
            self._visit(chance.uniform(0.2, 4))

    def _visit(self, seconds: float) -> None:
        """A member of each kind, for a while."""
        with self._producer("visitors") as producer, self._listening(), self._poller() as poller:
            self._send_one(producer, VISITOR)
            leaves = time.monotonic() + seconds
            while time.monotonic() < leaves:
                self._poll_once(poller)

    def _poll(self, poller: LitePullConsumer) -> None:
        while not self._ended:
            self._poll_once(poller)

    def _poll_once(self, poller: LitePullConsumer) -> None:
        for message in poller.poll(0.2):
            self._ledger.took(POLLING, message.body)

    def _take(self, consumer: PushConsumer) -> None:
        for message in consumer:
            try:
                message.ack()
            except DeliveryEnded:
                continue
            if self._ledger.took(STEADY, message.body):
                time.sleep(SLOW_SECONDS)

    def _on_messages(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            if self._ledger.took(STEADY, message.body):
                time.sleep(SLOW_SECONDS)
        return ConsumeStatus.CONSUME_SUCCESS


def _results(running: list[Future[None]]) -> None:
    """Wait for all; raises what one of them raised."""
    for one in running:
        one.result()
