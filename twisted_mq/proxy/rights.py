"""The rights that a proxy asks for itself, because no broker is asked: routes, assignments, and the settings of clients.

All other calls become requests to brokers, which check them (Apache: DefaultAuthorizationContextBuilder).
"""

from __future__ import annotations

from typing import TypeAlias

from twisted_mq.access.resources import Resource, group, topic
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.proxy.client import GrpcClient

WantedRights: TypeAlias = tuple[Resource, tuple[Action, ...]]
"""A topic or group, and the actions of which one must be allowed."""


def of_route(name: str) -> list[WantedRights]:
    """Return what the route of a topic needs: a right to publish or to subscribe."""
    return [(topic(name), (Action.PUB, Action.SUB))]


def of_consumer(group_name: str, *topics: str) -> list[WantedRights]:
    """Return what a member of a group needs that subscribes to topics."""
    return [(group(group_name), (Action.SUB,)), *((topic(name), (Action.SUB,)) for name in topics)]


def of_client(client: GrpcClient) -> list[WantedRights]:
    """Return what a client needs by its settings."""
    if client.is_producer:
        return [(topic(one.name), (Action.PUB,)) for one in client.settings.publishing.topics]
    return of_consumer(client.group, *(one.topic.name for one in client.settings.subscription.subscriptions))
