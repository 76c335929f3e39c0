"""Connected clients."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.heartbeat import SubscriptionData
from twisted_mq.protocol.bodies.types import (
    ConsumeFromWhere,
    ConsumeType,
    Int32,
    Int64,
    LanguageCode,
    MessageModel,
    wire,
)


@attrs.frozen
class Connection:
    """A connected client; `version` is an MQVersion ordinal."""

    client_id: str = ""
    client_addr: str = ""
    language: LanguageCode = "JAVA"
    version: Int32 = 0


@attrs.frozen
class ConsumerConnection:
    """Answer to GET_CONSUMER_CONNECTION_LIST."""

    connection_set: list[Connection] = field(factory=list)
    subscription_table: dict[str, SubscriptionData] = field(factory=dict)
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None


@attrs.frozen
class ProducerConnection:
    """Answer to GET_PRODUCER_CONNECTION_LIST."""

    connection_set: list[Connection] = field(factory=list)


@attrs.frozen
class ProducerInfo:
    """A connected producer; times in ms."""

    client_id: str = ""
    remote_ip: str = field(default="", metadata=wire("remoteIP"))
    language: LanguageCode = "JAVA"
    version: Int32 = 0
    last_update_timestamp: Int64 = 0


@attrs.frozen
class ProducerTableInfo:
    """Answer to GET_ALL_PRODUCER_INFO."""

    data: dict[str, list[ProducerInfo]] = field(factory=dict)
