"""Test with unittest, with confluent-kafka and a broker in a container."""

import unittest
import uuid

from confluent_kafka import Consumer, Producer
from testcontainers.kafka import KafkaContainer


class OrdersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.kafka = KafkaContainer()
        cls.kafka.start()
        cls.addClassCleanup(cls.kafka.stop)

    def test_a_sent_message_is_stored(self) -> None:
        topic, servers = f"test-{uuid.uuid4()}", self.kafka.get_bootstrap_server()
        producer = Producer({"bootstrap.servers": servers})
        producer.produce(topic, b"a chair")
        producer.flush(10)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
        self.addCleanup(consumer.close)
        consumer.subscribe([topic])
        message = consumer.poll(10)
        self.assertIsNotNone(message)
        self.assertEqual(message.value(), b"a chair")
