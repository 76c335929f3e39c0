"""Heartbeats: clients' reports about themselves to brokers."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import ConsumeFromWhere, ConsumeType, Int32, Int64, MessageModel, wire


def _tags(tags: Iterable[str]) -> frozenset[str]:
    return frozenset(tags)


def _codes(codes: Iterable[int]) -> frozenset[int]:
    return frozenset(codes)


@attrs.frozen
class SubscriptionData:
    """A group's subscription to a topic. `code_set` are the hash codes of `tags_set`; both are empty for all messages.
    `sub_version` is the time of its making in ms.
    """

    class_filter_mode: bool = False
    topic: str = ""
    sub_string: str = ""
    tags_set: frozenset[str] = field(factory=frozenset, converter=_tags)
    code_set: frozenset[Int32] = field(factory=frozenset, converter=_codes)
    sub_version: Int64 = 0
    expression_type: str = "TAG"
    filter_class_source: str | None = field(default=None, metadata=wire("filterClassSource", written=False))


@attrs.frozen
class ProducerData:
    """A producer group of a client."""

    group_name: str = ""


@attrs.frozen
class ConsumerData:
    """A consumer group of a client."""

    group_name: str = ""
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None
    subscription_data_set: list[SubscriptionData] = field(factory=list)
    unit_mode: bool = False


@attrs.frozen
class HeartbeatData:
    """Request body of HEART_BEAT. The C++ client sends enums as ordinals, numbers as text, and leaves out most
    members.
    """

    client_id: str = field(default="", metadata=wire("clientID"))
    producer_data_set: list[ProducerData] = field(factory=list)
    consumer_data_set: list[ConsumerData] = field(factory=list)
    heartbeat_fingerprint: Int32 = 0
    without_sub: bool = False


@attrs.frozen
class CheckClientRequestBody:
    """Request body of CHECK_CLIENT_CONFIG."""

    client_id: str = ""
    group: str = ""
    subscription_data: SubscriptionData | None = None
    namespace: str | None = None


@attrs.frozen
class QuerySubscriptionResponseBody:
    """Answer to QUERY_SUBSCRIPTION_BY_CONSUMER."""

    subscription_data: SubscriptionData | None = None
    group: str | None = None
    topic: str | None = None
