"""Logical queues of a static topic, and the broker that has each of them now (Apache: ClientMetadata, TopicQueueMappingUtils).

Clients know logical queues by a broker name of no broker, `__syslo__global__`, so that they stay the same queues while they
move between brokers.
"""

from __future__ import annotations

from collections.abc import Iterable

from twisted_mq.protocol.bodies import MessageQueue, TopicQueueMappingInfo, TopicRouteData

LOGICAL_PREFIX = "__syslo__"
"""MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX"""
NO_BROKER = "__syslo__none__"
"""MixAll.LOGICAL_QUEUE_MOCK_BROKER_NAME_NOT_EXIST: of a logical queue that no broker has now"""
GLOBAL_SCOPE = "__global__"
"""MixAll.METADATA_SCOPE_GLOBAL"""


def logical_broker_name(scope: str) -> str:
    """Return the broker name that means all brokers of a scope (TopicQueueMappingUtils.getMockBrokerName)."""
    return LOGICAL_PREFIX + (scope.removeprefix("__") if scope == GLOBAL_SCOPE else scope)


def is_logical(broker_name: str) -> bool:
    """Return whether it means the broker that has the queue now."""
    return broker_name.startswith(LOGICAL_PREFIX)


def logical_queues(topic: str, route: TopicRouteData) -> dict[MessageQueue, str]:
    """Return the queues of a static topic, each with the name of its broker; empty for any other topic."""
    scopes: dict[str, list[TopicQueueMappingInfo]] = {}
    for info in (route.topic_queue_mapping_by_broker or {}).values():
        scopes.setdefault(info.scope, []).append(info)
    found: dict[MessageQueue, str] = {}
    for scope, infos in scopes.items():
        brokers = _brokers_of(infos)
        for global_id in range(max(info.total_queues for info in infos)):
            queue = MessageQueue(topic, logical_broker_name(scope), global_id)
            found[queue] = brokers.get(global_id, NO_BROKER)
    return found


def _brokers_of(infos: Iterable[TopicQueueMappingInfo]) -> dict[int, str]:
    """Return the broker of each global id: while a queue moves, two have it, and the later epoch counts."""
    return {
        global_id: info.bname or NO_BROKER
        for info in sorted(infos, key=lambda one: one.epoch)
        for global_id in info.curr_id_map
    }
