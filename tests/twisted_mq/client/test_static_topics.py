"""Static topics: logical queues stay the same to clients, whichever broker has them."""

from __future__ import annotations

from typing import Any

import attrs

from tests.support.client_case import ClientCase
from twisted_mq.client import (
    BrokerGone,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    LitePullConsumer,
    Message,
    Producer,
    PushConsumer,
)
from twisted_mq.protocol.bodies import MessageQueue, TopicQueueMappingInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.message import MessageExt

FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
QUEUES = [MessageQueue("T", "__syslo__global__", one) for one in range(2)]


class StaticTopics(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.one = self.cluster.add_broker("one", {"T": 2, "%RETRY%g": 1})
        self.two = self.cluster.add_broker("two", {"T": 2})
        self.map(1, one=[0], two=[1])

    def map(self, epoch: int, **global_ids: list[int]) -> None:
        """Have brokers hold these logical queues."""
        infos = {
            name: TopicQueueMappingInfo("T", "__global__", 2, name, epoch, curr_id_map={one: one for one in held})
            for name, held in global_ids.items()
        }
        self.cluster.routes["T"] = attrs.evolve(self.cluster.routes["T"], topic_queue_mapping_by_broker=infos)

    def producer(self) -> Producer:
        producer = Producer(self.clock, "p", **self.client_arguments())
        self.run_to_end(producer.start())
        return producer

    def started(self, consumer: Any) -> Any:
        consumer.subscribe("T")
        self.run_to_end(consumer.start())
        self.advance(1)
        return consumer

    def test_sends_name_the_broker_that_has_the_queue_and_results_the_logical_queue(self) -> None:
        producer = self.producer()
        self.assertEqual(self.run_to_end(producer.publish_queues("T")), tuple(QUEUES))
        for queue, broker in zip(QUEUES, (self.one, self.two), strict=True):
            result = self.run_to_end(producer.send(Message("T", b"x"), queue))
            self.assertEqual(result.queue, queue)
            (header,) = broker.headers(RequestCode.SEND_MESSAGE_V2)
            self.assertEqual((header.queue_id, header.broker_name), (queue.queue_id, broker.name))

    def test_sends_go_round_the_logical_queues(self) -> None:
        producer = self.producer()
        for _ in range(6):
            self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual([len(one.headers(RequestCode.SEND_MESSAGE_V2)) for one in (self.one, self.two)], [3, 3])

    def test_sends_follow_a_queue_that_moves(self) -> None:
        producer = self.producer()
        self.run_to_end(producer.send(Message("T", b"x"), QUEUES[1]))
        self.map(2, one=[0, 1], two=[1])
        self.map(2, one=[0, 1])
        self.advance(31)
        self.run_to_end(producer.send(Message("T", b"y"), QUEUES[1]))
        self.run_to_end(producer.send_one_way(Message("T", b"z"), QUEUES[1]))
        self.assertEqual(len(self.one.headers(RequestCode.SEND_MESSAGE_V2)), 2)

    def test_a_queue_that_no_broker_has_is_refused(self) -> None:
        self.map(1, one=[0])
        producer = self.producer()
        error = self.run_to_failure(producer.send(Message("T", b"x"), QUEUES[1]), BrokerGone, seconds=3)
        self.assertIn("__syslo__none__", str(error))

    def test_pulls_and_commits_go_where_the_queue_is_under_its_logical_name(self) -> None:
        self.one.put("T", 0, b"a")
        self.two.put("T", 1, b"b")
        consumer = self.started(LitePullConsumer(self.clock, "g", options=FIRST, **self.client_arguments()))
        polled = self.run_to_end(consumer.poll(0)) + self.run_to_end(consumer.poll(0))
        self.assertEqual(sorted(message.body for message in polled), [b"a", b"b"])
        self.assertEqual(consumer.queues, QUEUES)
        self.run_to_end(consumer.commit())
        for broker, queue_id in ((self.one, 0), (self.two, 1)):
            for code in (RequestCode.LITE_PULL_MESSAGE, RequestCode.UPDATE_CONSUMER_OFFSET):
                asked = {(header.queue_id, header.bname) for header in broker.headers(code)}
                self.assertEqual(asked, {(queue_id, "__syslo__global__")})
        self.run_to_end(consumer.seek_to_begin(QUEUES[1]))
        self.run_to_end(consumer.stop())

    def test_what_is_refused_goes_to_the_retry_topic_as_a_message(self) -> None:
        def listen(messages: list[MessageExt], context: Any) -> ConsumeStatus:
            return ConsumeStatus.RECONSUME_LATER

        self.two.put("T", 1, b"b")
        consumer = self.started(
            PushConsumer(self.clock, "g", listener=listen, options=FIRST, **self.client_arguments())
        )
        ((topic, properties, _),) = self.one.delayed
        self.assertEqual((topic, properties["RETRY_TOPIC"], properties["DELAY"]), ("%RETRY%g", "T", "3"))
        self.assertEqual((self.one.sent_back, self.two.sent_back), ([], []))
        self.run_to_end(consumer.stop())

    def test_locks_are_asked_of_the_broker_that_has_the_queue(self) -> None:
        consumer = PushConsumer(self.clock, "g", options=FIRST, **self.client_arguments())
        consumer.listen_orderly(lambda messages, context: ConsumeOrderlyStatus.SUCCESS)
        self.started(consumer)
        self.assertEqual(({*self.one.locks} & {*QUEUES}, {*self.two.locks}), ({QUEUES[0]}, {QUEUES[1]}))
        self.run_to_end(consumer.stop())
        self.assertEqual({**self.one.locks, **self.two.locks}, {})
