"""Consuming by asking: polls, commits, seeks, assigned queues."""

from __future__ import annotations

from typing import Any

from tests.support.client_case import ClientCase
from twisted_mq.client import (
    BrokerError,
    ClientStateError,
    ConsumeFromWhere,
    ConsumerOptions,
    LitePullConsumer,
    NoRoute,
)
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import PullSysFlag


def queue(queue_id: int, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


class LitePull(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 2, "U": 1})

    def consumer(self, name: str = "c1", **rest: Any) -> LitePullConsumer:
        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, pull_batch_size=3)
        return LitePullConsumer(
            self.clock, "g", instance_name=name, options=options, **{**self.client_arguments(), **rest}
        )

    def started(self, *expression: str, assign: list[MessageQueue] | None = None, **rest: Any) -> LitePullConsumer:
        consumer = self.consumer(**rest)
        if assign is None:
            consumer.subscribe("T", *expression)
        else:
            consumer.assign(assign)
        self.run_to_end(consumer.start())
        self.advance(1)
        return consumer

    def poll(self, consumer: LitePullConsumer, seconds: float = 0) -> list[bytes]:
        polled = self.begin(consumer.poll(seconds))
        if seconds:
            self.advance(seconds)
        return [message.body for message in self.successResultOf(polled)]

    def put(self, count: int, queue_id: int = 0, topic: str = "T", word: bytes = b"m") -> None:
        self.broker.put(topic, queue_id, *[b"%s%d" % (word, number) for number in range(count)])
        self.settle()

    # polls

    def test_a_poll_returns_the_messages_of_one_pull(self) -> None:
        self.put(5)
        consumer = self.started()
        self.assertEqual([self.poll(consumer) for _ in range(3)], [[b"m0", b"m1", b"m2"], [b"m3", b"m4"], []])

    def test_a_poll_that_waits_ends_with_the_message_that_comes(self) -> None:
        consumer = self.started()
        waiting = self.begin(consumer.poll(5))
        self.advance(3)
        self.put(1)
        self.assertEqual([one.body for one in self.successResultOf(waiting)], [b"m0"])

    def test_a_poll_ends_without_messages_after_its_time(self) -> None:
        consumer = self.started()
        waiting = self.begin(consumer.poll(5))
        self.advance(4.75)
        self.assertNoResult(waiting)
        self.advance(0.5)
        self.assertEqual(self.successResultOf(waiting), [])

    def test_one_poll_waits_at_a_time(self) -> None:
        consumer = self.started()
        first = self.begin(consumer.poll(5))
        self.run_to_failure(consumer.poll(5), ClientStateError)
        first.addErrback(lambda _: None)
        first.cancel()
        self.assertEqual(self.poll(consumer), [])

    def test_pulls_carry_their_subscription(self) -> None:
        self.started("A || B")
        pull = self.broker.headers(RequestCode.LITE_PULL_MESSAGE)[0]
        flags = PullSysFlag.FLAG_SUSPEND | PullSysFlag.FLAG_SUBSCRIPTION | PullSysFlag.FLAG_LITE_PULL_MESSAGE
        self.assertEqual((pull.subscription, pull.sys_flag), ("A || B", flags))
        (data,) = self.broker.heartbeats[-1].consumer_data_set
        self.assertEqual(data.consume_type, "CONSUME_ACTIVELY")

    def test_polls_need_a_running_consumer(self) -> None:
        self.run_to_failure(self.consumer().poll(), ClientStateError)

    # offsets

    def test_what_was_polled_counts_as_consumed_with_the_next_poll(self) -> None:
        self.put(5)
        consumer = self.started()
        self.poll(consumer)
        self.advance(6)
        self.assertEqual(self.broker.offsets, {})
        self.poll(consumer)
        self.advance(6)
        self.assertEqual(self.broker.offsets["g", "T", 0], 3)
        self.run_to_end(consumer.stop())
        self.assertEqual(self.broker.offsets["g", "T", 0], 5)
        self.assert_no_timers()

    def test_without_auto_commit_only_commit_does(self) -> None:
        self.put(5)
        consumer = self.started(auto_commit=False)
        self.poll(consumer)
        self.run_to_end(consumer.commit())
        self.poll(consumer)
        self.poll(consumer)
        self.run_to_end(consumer.stop())
        self.assertEqual(self.broker.offsets["g", "T", 0], 3)
        again = self.started()
        self.assertEqual(self.poll(again), [b"m3", b"m4"])

    def test_messages_that_are_not_selected_are_passed_over(self) -> None:
        self.put(3)
        consumer = self.started("A")
        self.assertEqual(self.poll(consumer), [])
        self.run_to_end(consumer.stop())
        self.assertEqual(self.broker.offsets["g", "T", 0], 3)

    def test_seek_goes_to_and_fro(self) -> None:
        self.put(5)
        consumer = self.started()
        for offset, expected in ((4, [b"m4"]), (1, [b"m1", b"m2", b"m3"])):
            consumer.seek(queue(0), offset)
            self.settle()
            self.assertEqual(self.poll(consumer), expected)
        self.run_to_end(consumer.seek_to_end(queue(0)))
        self.assertEqual(self.poll(consumer), [])
        self.broker.min_offsets["T", 0] = 2
        self.run_to_end(consumer.seek_to_begin(queue(0)))
        self.settle()
        self.assertEqual(self.poll(consumer), [b"m2", b"m3", b"m4"])
        self.run_to_end(consumer.stop())
        self.assertEqual(self.broker.offsets["g", "T", 0], 5)

    def test_seek_back_is_committed(self) -> None:
        self.put(3)
        consumer = self.started()
        self.poll(consumer)
        self.run_to_end(consumer.commit())
        consumer.seek(queue(0), 1)
        self.run_to_end(consumer.commit())
        self.assertEqual(self.broker.offsets["g", "T", 0], 1)
        self.assertEqual(self.run_to_end(consumer.committed(queue(0))), 1)
        self.assertIsNone(self.run_to_end(consumer.committed(queue(0, "U"))))

    def test_what_was_polled_before_a_reset_does_not_undo_it(self) -> None:
        self.put(5)
        consumer = self.started()
        self.poll(consumer)
        self.run_to_end(consumer.reset_offsets("T", {queue(0): 1}))
        self.advance(1)
        self.assertEqual(self.poll(consumer), [b"m1", b"m2", b"m3"])
        self.advance(6)
        self.assertEqual(self.broker.offsets["g", "T", 0], 1)
        self.run_to_end(consumer.commit())
        self.assertEqual(self.broker.offsets["g", "T", 0], 4)

    def test_a_queue_of_others_cannot_be_sought(self) -> None:
        with self.assertRaisesRegex(ClientStateError, "queue_id=9"):
            self.started().seek(queue(9), 0)

    def test_the_offset_of_a_time_is_asked_of_the_broker(self) -> None:
        self.assertEqual(self.run_to_end(self.started().offset_for_time(queue(0), 1_700_000_000)), 1)
        (header,) = self.broker.headers(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
        self.assertEqual(header.timestamp, 1_700_000_000_000)

    # queues

    def test_subscribed_queues_are_shared_in_the_group(self) -> None:
        first = self.started(name="c1")
        second = self.started(name="c2")
        self.advance(2)
        self.assertEqual([one.queues for one in (first, second)], [[queue(0)], [queue(1)]])

    def test_assigned_queues_are_taken_whoever_else_has_them(self) -> None:
        self.put(1)
        self.put(1, topic="U", word=b"u")
        self.started()
        consumer = self.started(assign=[queue(0)], name="c2")
        self.assertEqual((consumer.queues, self.poll(consumer)), ([queue(0)], [b"m0"]))
        consumer.assign([queue(0, "U")])
        self.advance(1)
        self.assertEqual((consumer.queues, self.poll(consumer)), ([queue(0, "U")], [b"u0"]))
        self.assertEqual([queue.queue_id for queue in self.run_to_end(consumer.fetch_queues("T"))], [0, 1])
        self.run_to_failure(consumer.fetch_queues("Nowhere"), NoRoute)

    def test_a_consumer_subscribes_or_assigns(self) -> None:
        subscribed, assigned = self.consumer(), self.consumer()
        subscribed.subscribe("T")
        assigned.assign([queue(0)])
        with self.assertRaises(ClientStateError):
            subscribed.assign([queue(0)])
        with self.assertRaises(ClientStateError):
            assigned.subscribe("T")

    def test_a_topic_that_is_unsubscribed_is_given_up(self) -> None:
        consumer = self.started()
        consumer.subscribe("U")
        self.advance(1)
        self.assertEqual(len(consumer.queues), 3)
        consumer.unsubscribe("T")
        self.advance(1)
        self.assertEqual(consumer.queues, [queue(0, "U")])

    def test_a_paused_queue_is_not_pulled(self) -> None:
        consumer = self.started()
        consumer.pause(queue(0))
        self.put(1)
        self.advance(1)
        self.put(1, word=b"later")
        self.put(1, 1, word=b"other")
        self.assertEqual([self.poll(consumer), self.poll(consumer), self.poll(consumer, 2)], [[b"m0"], [b"other0"], []])
        consumer.resume(queue(0))
        self.assertEqual(self.poll(consumer, 2), [b"later0"])

    def test_an_administrator_cannot_have_a_listener_called(self) -> None:
        consumer = self.started()
        self.run_to_failure(consumer.consume_directly(None, None), BrokerError)  # type: ignore[arg-type]
