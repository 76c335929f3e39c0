"""The client library in plain calls, for scripts, Django or Celery, with the names and options of twisted_mq.client.

from twisted_mq.blocking import Message, Producer, PushConsumer

with Producer("127.0.0.1:9876", group="orders") as producer:
    producer.send(Message("Orders", b"hello"), timeout=3)
with PushConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    for message in consumer.messages(timeout=10):
        message.ack()  # or message.retry(delay_level=3)

One background thread does the work of all clients; it runs while any client is started. Calls may come from any thread. In a
thread that runs an event loop they raise ClientStateError, because they would block the loop: use twisted_mq.aio there.
"""

from typing import TYPE_CHECKING

from twisted_mq.client.values import VALUES
from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.blocking.admin import Admin as Admin
    from twisted_mq.blocking.calls import CallTimedOut as CallTimedOut
    from twisted_mq.blocking.lite_pull_consumer import LitePullConsumer as LitePullConsumer
    from twisted_mq.blocking.mq_client import MQClient as MQClient
    from twisted_mq.blocking.ordered import OrderedConsumer as OrderedConsumer
    from twisted_mq.blocking.ordered import OrderedProducer as OrderedProducer
    from twisted_mq.blocking.producer import Producer as Producer
    from twisted_mq.blocking.producer import TransactionProducer as TransactionProducer
    from twisted_mq.blocking.push_consumer import Listener as Listener
    from twisted_mq.blocking.push_consumer import OrderlyListener as OrderlyListener
    from twisted_mq.blocking.push_consumer import PushConsumer as PushConsumer
    from twisted_mq.blocking.received import ReceivedMessage as ReceivedMessage
    from twisted_mq.client.consuming.deliveries import DeliveryEnded as DeliveryEnded
    from twisted_mq.client.consuming.once import once as once
    from twisted_mq.client.values import *  # noqa: F403 - re-exported

HOMES = VALUES | homes(
    {
        "twisted_mq.blocking.admin": "Admin",
        "twisted_mq.blocking.calls": "CallTimedOut",
        "twisted_mq.blocking.lite_pull_consumer": "LitePullConsumer",
        "twisted_mq.blocking.mq_client": "MQClient",
        "twisted_mq.blocking.ordered": "OrderedConsumer OrderedProducer",
        "twisted_mq.blocking.producer": "Producer TransactionProducer",
        "twisted_mq.blocking.push_consumer": "Listener OrderlyListener PushConsumer",
        "twisted_mq.blocking.received": "ReceivedMessage",
        "twisted_mq.client.consuming.deliveries": "DeliveryEnded",
        "twisted_mq.client.consuming.once": "once",
    }
)
"""The module of each name, which is loaded when the name is first used."""

if not TYPE_CHECKING:
    __all__ = sorted(HOMES)  # noqa: PLE0605 - type checkers read the imports above
    __getattr__ = on_first_use(__name__, HOMES)
