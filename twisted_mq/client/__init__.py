"""The client library: producers and consumers for this project's and Apache's clusters. Every call returns a Deferred.

from twisted_mq.client import Message, Producer
"""

from typing import TYPE_CHECKING

from twisted_mq.client.values import VALUES
from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.admin.admin import Admin as Admin
    from twisted_mq.client.consuming.consumer_options import Listener as Listener
    from twisted_mq.client.consuming.consumer_options import OrderlyListener as OrderlyListener
    from twisted_mq.client.consuming.lite_pull_consumer import LitePullConsumer as LitePullConsumer
    from twisted_mq.client.consuming.once import once as once
    from twisted_mq.client.consuming.push_consumer import PushConsumer as PushConsumer
    from twisted_mq.client.core.mq_client import MQClient as MQClient
    from twisted_mq.client.ordered.ordered_consumer import OrderedConsumer as OrderedConsumer
    from twisted_mq.client.ordered.ordered_producer import OrderedProducer as OrderedProducer
    from twisted_mq.client.producing.producer import Producer as Producer
    from twisted_mq.client.producing.transaction_producer import TransactionProducer as TransactionProducer
    from twisted_mq.client.values import *  # noqa: F403 - re-exported

HOMES = VALUES | homes(
    {
        "twisted_mq.admin.admin": "Admin",
        "twisted_mq.client.consuming.consumer_options": "Listener OrderlyListener",
        "twisted_mq.client.consuming.lite_pull_consumer": "LitePullConsumer",
        "twisted_mq.client.consuming.once": "once",
        "twisted_mq.client.consuming.push_consumer": "PushConsumer",
        "twisted_mq.client.core.mq_client": "MQClient",
        "twisted_mq.client.ordered.ordered_consumer": "OrderedConsumer",
        "twisted_mq.client.ordered.ordered_producer": "OrderedProducer",
        "twisted_mq.client.producing.producer": "Producer",
        "twisted_mq.client.producing.transaction_producer": "TransactionProducer",
    }
)
"""The module of each name, which is loaded when the name is first used."""

if not TYPE_CHECKING:
    __all__ = sorted(HOMES)  # noqa: PLE0605 - type checkers read the imports above
    __getattr__ = on_first_use(__name__, HOMES)
