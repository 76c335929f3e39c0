"""Test with pytest, with confluent-kafka and a broker in a container."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from testcontainers.kafka import KafkaContainer


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    with KafkaContainer() as kafka:
        yield kafka.get_bootstrap_server()


@pytest.fixture
def topic() -> str:
    return f"test-{uuid.uuid4()}"


@pytest.fixture
def producer(servers):
    made = Producer({"bootstrap.servers": servers})
    yield made
    made.flush(10)


@pytest.fixture
def consumer(servers, topic):
    made = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
    made.subscribe([topic])
    yield made
    made.close()


def test_a_sent_message_is_received(topic, producer, consumer):
    producer.produce(topic, b"a chair")
    producer.flush(10)
    message = consumer.poll(10)
    assert message is not None
    assert message.error() is None
    assert message.value() == b"a chair"
