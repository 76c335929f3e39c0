"""The registration of a gRPC client in a broker's tables: as producer of its topics, or as consumer of its group."""

from __future__ import annotations

from twisted_mq.protocol.bodies import ConsumerData
from twisted_mq.proxy.client import SIMPLE_CONSUMER, GrpcClient
from twisted_mq.proxy.filters import subscription_of


def groups_of(client: GrpcClient) -> tuple[frozenset[str], frozenset[str]]:
    """Return a client's producer groups, which are named after its topics, and its consumer groups."""
    if client.is_producer:
        return frozenset(topic.name for topic in client.settings.publishing.topics), frozenset()
    return frozenset(), frozenset({client.group})


def consumer_data(client: GrpcClient) -> ConsumerData:
    """Return a client's consumer group with its subscriptions. Raises ProxyError for an expression that cannot be read."""
    settings = client.settings
    now_ms = int(client.clock.seconds() * 1000)
    subscriptions = [
        subscription_of(entry.topic.name, entry.expression, now_ms) for entry in settings.subscription.subscriptions
    ]
    simple = settings.client_type == SIMPLE_CONSUMER
    return ConsumerData(
        group_name=client.group,
        consume_type="CONSUME_ACTIVELY" if simple else "CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=subscriptions,
    )
