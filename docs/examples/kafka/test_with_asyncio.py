"""Test asyncio code with pytest-asyncio, with aiokafka and a broker in a container."""

import uuid
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from testcontainers.kafka import KafkaContainer


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    with KafkaContainer() as kafka:
        yield kafka.get_bootstrap_server()


@pytest.mark.asyncio
async def test_a_sent_message_is_stored(servers: str) -> None:
    topic = f"test-{uuid.uuid4()}"
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"a chair")
    async with AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        assert (await consumer.getone()).value == b"a chair"
