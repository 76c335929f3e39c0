"""Subscriptions by tag expression, and which messages they select (Apache: FilterAPI, DefaultMessageFilter)."""

from __future__ import annotations

from twisted_mq.protocol.bodies import SubscriptionData
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.text.java import BLANKS, java_hash, tags_code

SUB_ALL = "*"
TAG = "TAG"
SQL92 = "SQL92"


class SubscriptionError(ProtocolError):
    """An expression that selects nothing and cannot be meant."""


def is_tag_type(expression_type: str | None) -> bool:
    """Return whether the expression is of tags; absent and empty count as such (Apache: ExpressionType.isTagType)."""
    return expression_type in (None, "", TAG)


def split_tags(expression: str) -> list[str]:
    """Return the tags of `a || b`, without surrounding blanks, in order and each once."""
    tags = (part.strip(BLANKS) for part in expression.split("||"))
    return list(dict.fromkeys(tag for tag in tags if tag))


def build_subscription(
    topic: str, expression: str | None, expression_type: str | None = TAG, *, sub_version: int = 0
) -> SubscriptionData:
    """Return the subscription as a client sends it. `sub_version` is the time of its creation in ms.

    A tag expression that is absent, empty or `*` selects all. Raises SubscriptionError for one with only separators
    (`||`), and for an empty expression of another type.
    """
    if not is_tag_type(expression_type):
        if not expression:
            raise SubscriptionError(f"an empty {expression_type} expression for topic {topic}")
        return _subscription(topic, expression, [], expression_type or TAG, sub_version)
    if not expression or expression == SUB_ALL:
        return _subscription(topic, SUB_ALL, [], TAG, sub_version)
    return _subscription(topic, expression, _tags_in(topic, expression), TAG, sub_version)


def _tags_in(topic: str, expression: str) -> list[str]:
    if not expression.replace("||", ""):
        raise SubscriptionError(f"no tag in the expression {expression!r} for topic {topic}")
    return split_tags(expression)


def codes_of_tags(topic: str, expression: str) -> frozenset[int]:
    """Return the tags codes that `build_subscription` has for tags, without the rest. Raises SubscriptionError."""
    return frozenset(map(tags_code, _tags_in(topic, expression)))


def _subscription(
    topic: str, expression: str, tags: list[str], expression_type: str, sub_version: int
) -> SubscriptionData:
    return SubscriptionData(
        topic=topic,
        tags_set=tags,
        code_set=map(java_hash, tags),
        sub_string=expression,
        sub_version=sub_version,
        expression_type=expression_type,
    )


def selected_codes(subscription: SubscriptionData) -> frozenset[int] | None:
    """Return the tags codes that a queue's entries must have; None if every entry is selected."""
    everything = subscription.class_filter_mode or subscription.sub_string == SUB_ALL
    if everything or not is_tag_type(subscription.expression_type):
        return None
    return subscription.code_set


def selects(subscription: SubscriptionData, tags: str | None) -> bool:
    """Return whether a message with these tags is selected: the consumer's exact check after the broker's check of hashes.

    Without tags in the subscription every message passes (Apache: PullAPIWrapper.processPullResult).
    """
    return selects_all(subscription) or tags in subscription.tags_set


def selects_all(subscription: SubscriptionData) -> bool:
    """Return whether no message is left out by its tags."""
    return subscription.class_filter_mode or not subscription.tags_set
