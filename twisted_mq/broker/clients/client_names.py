"""Limits of the names that clients register at a broker, and the memory that the broker keeps for them."""

from __future__ import annotations

from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, SubscriptionData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError

MOST_GROUP_NAME = 255
"""The limit of a group's name in characters (Apache: Validators.CHARACTER_MAX_LENGTH)."""
MOST_CLIENT_ID = 1024
"""The limit of a client id in characters. Apache has no limit."""

MEMBER_BYTES = 600
SUBSCRIPTION_BYTES = 600
TAG_BYTES = 250
"""The memory in bytes of a group member, a subscription and a subscription's tag, without their texts.

Texts are kept up to twice.
"""


def check_name(member: str, name: str | None, most: int) -> None:
    """Raise BrokerError if a name is too long."""
    if len(name or "") > most:
        remark = f"{member}={(name or '')[:60]}...: {len(name or '')} characters, the limit is {most}"
        raise BrokerError(ResponseCode.INVALID_PARAMETER, remark)


def check_names(data: HeartbeatData) -> None:
    """Raise BrokerError if a name of a heartbeat is too long. Consumer groups are checked where they are created."""
    check_name("clientID", data.client_id, MOST_CLIENT_ID)
    for group in data.producer_data_set:
        check_name("groupName", group.group_name, MOST_GROUP_NAME)


def size_of(consumer: ConsumerData, client_id: str) -> int:
    """Return the memory in bytes that a member of a consumer group takes."""
    texts = (client_id, consumer.consume_type, consumer.message_model, consumer.consume_from_where)
    return MEMBER_BYTES + _length(*texts) + sum(_size(one) for one in consumer.subscription_data_set)


def _size(subscription: SubscriptionData) -> int:
    one = subscription
    texts = _length(one.topic, one.sub_string, one.expression_type, one.filter_class_source)
    return SUBSCRIPTION_BYTES + 2 * texts + TAG_BYTES * (len(one.tags_set) + len(one.code_set))


def _length(*texts: str | None) -> int:
    return sum(len(text or "") for text in texts)
