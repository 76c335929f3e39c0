"""Test Twisted code with trial, with confluent-kafka in threads and a broker in a container. Kafka has no delay to test."""

import uuid

from confluent_kafka import Consumer, Producer
from testcontainers.kafka import KafkaContainer
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase


class RemindersTest(TestCase):
    def setUp(self) -> None:
        self.kafka = KafkaContainer()
        self.kafka.start()
        self.addCleanup(self.kafka.stop)

    async def test_a_reminder_is_stored(self) -> None:
        topic, servers = f"test-{uuid.uuid4()}", self.kafka.get_bootstrap_server()
        producer = Producer({"bootstrap.servers": servers})
        producer.produce(topic, b"pay")
        await deferToThread(producer.flush, 10)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
        self.addCleanup(consumer.close)
        consumer.subscribe([topic])
        message = await deferToThread(consumer.poll, 10)
        self.assertIsNotNone(message)
        self.assertEqual(message.value(), b"pay")
