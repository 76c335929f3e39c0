"""Filter expressions of gRPC clients."""

from __future__ import annotations

from typing import Any

from twisted_mq.protocol.messages.subscription import SQL92, TAG, SubscriptionError, build_subscription
from twisted_mq.proxy.messages import FilterType
from twisted_mq.proxy.statuses import ProxyError

SQL = FilterType.Value("SQL")


def subscription_of(topic: str, expression: Any, sub_version: int = 0) -> Any:
    """Return the subscription of a topic with a FilterExpression. Raises ProxyError if the expression cannot be read."""
    kind = SQL92 if expression.type == SQL else TAG
    try:
        return build_subscription(topic, expression.expression, kind, sub_version=sub_version)
    except SubscriptionError as error:
        raise ProxyError("ILLEGAL_FILTER_EXPRESSION", str(error)) from None
