"""Sending for operators, with a producer that lives for one task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.producer import Producer
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message


@asynccontextmanager
async def started_producer(admin: AdminCalls, group: str, *, trace: bool = False) -> AsyncIterator[Producer]:
    """Start a producer, and stop it at the end of the block."""
    assert admin.reactor is not None
    keys = admin.credentials
    named = ClientOptions() if keys is None else ClientOptions(access_key=keys.access_key, secret_key=keys.secret_key)
    named = named if admin.client_options is None else admin.client_options()
    client = MQClient(admin.reactor, admin.name_servers, options=named)
    producer = Producer(admin.reactor, group, client=client, options=ProducerOptions(message_trace=trace))
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def send_once(
    admin: AdminCalls, message: Message, group: str, queue: MessageQueue | None = None, *, trace: bool = False
) -> SendResult:
    """Send one message with a new producer; return the result."""
    async with started_producer(admin, group, trace=trace) as producer:
        return await producer.send(message, queue)
