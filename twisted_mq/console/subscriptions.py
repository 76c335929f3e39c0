"""Compares the subscriptions of a group's members: if they differ, members get messages of others, or none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import attrs

from twisted_mq.protocol.bodies import ConsumerRunningInfo
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX

NOT_SUBSCRIBED = "not subscribed"


@attrs.frozen
class TopicConflict:
    """A topic that members subscribe to differently: expression -> the members with it."""

    topic: str
    wanted: Mapping[str, list[str]]


def conflicts(infos: Mapping[str, ConsumerRunningInfo]) -> list[TopicConflict]:
    """Return the conflicts, by topic. Retry topics are each member's own matter."""
    wanted = {client_id: _expressions(info) for client_id, info in infos.items()}
    topics = sorted({topic for expressions in wanted.values() for topic in expressions})
    found = []
    for topic in topics:
        by_expression: defaultdict[str, list[str]] = defaultdict(list)
        for client_id in sorted(wanted):
            by_expression[wanted[client_id].get(topic, NOT_SUBSCRIBED)].append(client_id)
        if len(by_expression) > 1:
            found.append(TopicConflict(topic, dict(by_expression)))
    return found


def _expressions(info: ConsumerRunningInfo) -> dict[str, str]:
    """Return topic -> expression, as the member wrote it; SQL with its name."""
    return {
        one.topic: one.sub_string
        if one.expression_type in (None, "TAG")
        else f"{one.expression_type}: {one.sub_string}"
        for one in info.subscription_set
        if not one.topic.startswith(RETRY_PREFIX)
    }
