"""Producers and consumers of a namespace: whole names at the brokers, short ones for the user."""

from __future__ import annotations

from typing import Any

from tests.support.client_case import ClientCase
from twisted_mq.client import (
    ClientOptions,
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    LitePullConsumer,
    Message,
    Producer,
    PushConsumer,
    TransactionProducer,
    TransactionState,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import CheckTransactionStateRequestHeader
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import signature_of

FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)


class Namespaces(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"space%T": 1, "%RETRY%space%g": 1, "C_REPLY_TOPIC": 1})

    def arguments(self) -> dict[str, Any]:
        return {"namespace": "space", **self.client_arguments()}

    def test_every_send_names_the_whole_topic_and_group(self) -> None:
        producer = Producer(self.clock, "g", **self.arguments())
        self.run_to_end(producer.start())
        (queue,) = self.run_to_end(producer.publish_queues("T"))
        self.assertEqual(queue.topic, "space%T")
        message = Message("T", b"x")
        for sent in (
            producer.send(message), producer.send(message, queue), producer.send_by_key(message, 1),
            producer.send_batch([message, message]), producer.send_one_way(message),
        ):  # fmt: skip
            self.run_to_end(sent)
        self.assertEqual((message.topic, len(self.broker.queues["space%T", 0])), ("T", 6))
        self.assertEqual({one.producer_group for one in self.broker.headers(RequestCode.SEND_MESSAGE_V2)}, {"space%g"})

    def test_a_reply_goes_where_the_cluster_has_its_replies(self) -> None:
        producer = Producer(self.clock, "g", **self.arguments())
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("C_REPLY_TOPIC", b"x", properties={"MSG_TYPE": "reply"})))
        self.assertEqual(len(self.broker.queues["C_REPLY_TOPIC", 0]), 1)

    def test_listeners_see_the_short_topic_also_of_what_comes_again(self) -> None:
        seen: list[str] = []

        def listen(messages: list[MessageExt], context: Any) -> ConsumeStatus:
            seen.extend(message.topic for message in messages)
            return ConsumeStatus.RECONSUME_LATER

        consumer = PushConsumer(self.clock, "g", listener=listen, options=FIRST, **self.arguments())
        consumer.subscribe("T")
        self.run_to_end(consumer.start())
        self.broker.put("space%T", 0, b"x")
        self.broker.put("%RETRY%space%g", 0, b"again", properties="RETRY_TOPIC\x01space%T\x02")
        self.advance(1)
        self.assertEqual(seen, ["T", "T"])
        (data,) = self.broker.heartbeats[-1].consumer_data_set
        topics = [one.topic for one in data.subscription_data_set]
        self.assertEqual((data.group_name, topics), ("space%g", ["%RETRY%space%g", "space%T"]))
        self.assertEqual({(one.group, one.origin_topic) for one in self.broker.sent_back}, {("space%g", "space%T")})
        consumer.unsubscribe("T")
        self.advance(1)
        self.assertEqual([queue.topic for queue in consumer.queues], ["%RETRY%space%g"])

    def test_polls_bring_messages_of_the_short_topic(self) -> None:
        consumer = LitePullConsumer(self.clock, "g", options=FIRST, **self.arguments())
        consumer.assign(self.run_to_end(consumer.fetch_queues("T")))
        self.run_to_end(consumer.start())
        self.broker.put("space%T", 0, b"x")
        self.advance(1)
        self.assertEqual([message.topic for message in self.run_to_end(consumer.poll())], ["T"])

    def test_a_check_of_a_transaction_gets_the_short_topic(self) -> None:
        checked: list[str] = []

        def check(message: MessageExt) -> TransactionState:
            checked.append(message.topic)
            return TransactionState.COMMIT

        producer = TransactionProducer(self.clock, "g", check=check, **self.arguments())
        self.run_to_end(producer.start())
        self.run_to_end(producer.send_in_transaction(Message("T", b"x"), lambda message: TransactionState.UNKNOWN))
        message = decode_message(self.broker.queues["space%T", 0][0].record)
        self.assertEqual(message.properties["PGROUP"], "space%g")
        header = CheckTransactionStateRequestHeader(tran_state_table_offset=0, commit_log_offset=0)
        self.run_to_end(producer.check_transaction(header, message))
        self.assertEqual(checked, ["T"])


class NamespaceFields(ClientCase):
    def test_every_request_names_the_space_and_names_stay(self) -> None:
        broker = self.cluster.add_broker("broker-a", {"T": 1})
        seen: list[RemotingCommand] = []
        for server in (broker, *self.cluster.name_servers):
            processors = server.factory.traffic.processors
            for code, processor in list(processors.items()):
                processors[code] = self.noting(processor, seen)
        options = ClientOptions(namespace_v2="space", access_key="ada", secret_key="planted")
        producer = Producer(self.clock, "g", client_options=options, **self.client_arguments())
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("T", b"x")))
        self.run_to_end(producer.send_one_way(Message("T", b"x")))
        self.run_to_end(producer.stop())
        self.assertGreaterEqual(len(seen), 4)
        for request in seen:
            fields = request.ext_fields
            self.assertEqual((fields["ns"], fields["nsd"]), ("space", "true"))
            self.assertEqual(signature_of(fields, request.body, "planted"), fields["Signature"])
        self.assertEqual([*broker.queues], [("T", 0)])

    def noting(self, processor: Any, seen: list[RemotingCommand]) -> Any:
        def process(channel: Any, request: RemotingCommand) -> Any:
            seen.append(request)
            return processor(channel, request)

        return process
