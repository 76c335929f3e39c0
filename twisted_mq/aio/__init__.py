"""The client library for asyncio, on the application's running loop, with the names and options of twisted_mq.client.

from twisted_mq.aio import Message, Producer, PushConsumer

async with Producer("127.0.0.1:9876", group="orders") as producer:
    result = await producer.send(Message("Orders", b"hello", tags="new"))
async with PushConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    async for message in consumer:
        await message.ack()  # or message.retry(delay_level=3)
"""

from typing import TYPE_CHECKING

from twisted_mq.client.values import VALUES
from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.aio.admin import Admin as Admin
    from twisted_mq.aio.lite_pull_consumer import LitePullConsumer as LitePullConsumer
    from twisted_mq.aio.mq_client import MQClient as MQClient
    from twisted_mq.aio.once import once as once
    from twisted_mq.aio.ordered import OrderedConsumer as OrderedConsumer
    from twisted_mq.aio.ordered import OrderedProducer as OrderedProducer
    from twisted_mq.aio.producer import Producer as Producer
    from twisted_mq.aio.producer import TransactionProducer as TransactionProducer
    from twisted_mq.aio.push_consumer import PushConsumer as PushConsumer
    from twisted_mq.aio.received import ReceivedMessage as ReceivedMessage
    from twisted_mq.client.consuming.consumer_options import Listener as Listener
    from twisted_mq.client.consuming.consumer_options import OrderlyListener as OrderlyListener
    from twisted_mq.client.consuming.deliveries import DeliveryEnded as DeliveryEnded
    from twisted_mq.client.values import *  # noqa: F403 - re-exported

HOMES = VALUES | homes(
    {
        "twisted_mq.aio.admin": "Admin",
        "twisted_mq.aio.lite_pull_consumer": "LitePullConsumer",
        "twisted_mq.aio.mq_client": "MQClient",
        "twisted_mq.aio.once": "once",
        "twisted_mq.aio.ordered": "OrderedConsumer OrderedProducer",
        "twisted_mq.aio.producer": "Producer TransactionProducer",
        "twisted_mq.aio.push_consumer": "PushConsumer",
        "twisted_mq.aio.received": "ReceivedMessage",
        "twisted_mq.client.consuming.consumer_options": "Listener OrderlyListener",
        "twisted_mq.client.consuming.deliveries": "DeliveryEnded",
    }
)
"""The module of each name, which is loaded when the name is first used."""

if not TYPE_CHECKING:
    __all__ = sorted(HOMES)  # noqa: PLE0605 - type checkers read the imports above
    __getattr__ = on_first_use(__name__, HOMES)
