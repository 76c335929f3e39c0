"""QueryRoute and QueryAssignment: the queues that clients use, and their addresses."""

from __future__ import annotations

from typing import Any

from twisted_mq.protocol.bodies import BrokerData
from twisted_mq.proxy.checks import checked_group, checked_topic
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.messages import (
    Assignment,
    Broker,
    MessageQueue,
    QueryAssignmentResponse,
    QueryRouteResponse,
    Resource,
)
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.queues import accepted_types, broker_queues, endpoints_of, permission, permissions, readable
from twisted_mq.proxy.rights import of_consumer, of_route
from twisted_mq.proxy.statuses import ProxyError, ok

WHOLE_BROKER = -1
"""The queue id of an assignment of all queues of a broker."""


class Routing:
    """Handles the calls that all kinds of clients make."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def query_route(self, client: GrpcClient, request: Any) -> Any:
        """Return each queue of the topic, for each broker process that has it."""
        topic = checked_topic(request.topic)
        await self._parts.brokers.permit(client, of_route(topic))
        route = await self._parts.brokers.route(topic)
        types = accepted_types(await self._parts.brokers.message_type(topic))
        queues = []
        for broker, data in broker_queues(route):
            for broker_id, address in sorted(broker.broker_addrs.items()):
                shown = Broker(
                    name=broker.broker_name,
                    id=int(broker_id),
                    endpoints=self._endpoints(broker, address, request.endpoints),
                )
                queues += [
                    MessageQueue(
                        topic=Resource(name=topic),
                        id=queue_id,
                        permission=permission(name),
                        broker=shown,
                        accept_message_types=types,
                    )
                    for queue_id, name in enumerate(permissions(data))
                ]
        return QueryRouteResponse(status=ok(), message_queues=queues)

    async def query_assignment(self, client: GrpcClient, request: Any) -> Any:
        """Return a push consumer's assignments: one for each broker, or one for each queue if the group consumes in order."""
        topic, group = checked_topic(request.topic), checked_group(request.group)
        await self._parts.brokers.permit(client, of_consumer(group, topic))
        config = await self._parts.brokers.group(group, topic)
        order = config is not None and config.consume_message_orderly
        assignments = []
        for broker, data in readable(await self._parts.brokers.route(topic)):
            address = broker.broker_addrs[0]
            shown = Broker(name=broker.broker_name, id=0, endpoints=self._endpoints(broker, address, request.endpoints))
            ids = range(data.read_queue_nums) if order else (WHOLE_BROKER,)
            for queue_id in ids:
                queue = MessageQueue(
                    topic=Resource(name=topic), id=queue_id, permission=permission("READ"), broker=shown
                )
                assignments.append(Assignment(message_queue=queue))
        if not assignments:
            raise ProxyError("FORBIDDEN", f"topic {topic} has no readable queue")
        return QueryAssignmentResponse(status=ok(), assignments=assignments)

    def _endpoints(self, broker: BrokerData, address: str, asked: Any) -> Any:
        found = self._parts.brokers.endpoint_of(broker.broker_name, address)
        if found is not None:
            return endpoints_of(*found)
        if not asked.addresses:
            raise ProxyError("ILLEGAL_ACCESS_POINT", "endpoints: at least one address is required")
        return asked
