"""Selects the messages that a pull gets of its queue: by the tags' hashes, or by an expression over the messages' properties.

Apache: PullMessageProcessor, between the checks of the group and the read of the store.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Protocol

import attrs

from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterData
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.message_filter import MessageFilter, request_filter
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.clocks import ClockSteps
from twisted_mq.protocol.bodies import SubscriptionData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.headers import PullMessageRequestHeader
from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.layouts.record import read_head, read_spans
from twisted_mq.protocol.messages.subscription import (
    SUB_ALL,
    TAG,
    SubscriptionError,
    build_subscription,
    codes_of_tags,
    is_tag_type,
)
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.storage.interfaces import RecordTest

PARSE_FAILED = "parse the consumer's subscription failed"


class FilterParts(Protocol):
    """The parts of the broker that selections use."""

    options: BrokerOptions
    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    steps: ClockSteps
    filters: ConsumerFilterManager


@attrs.frozen
class Selection:
    """The two tests of a read of the store; None lets every message pass."""

    tags_codes: Collection[int] | None
    matches: RecordTest | None = None


EVERYTHING = Selection(None)

_ALL_EXPRESSIONS = (SUB_ALL, "", None)
"""The tag expressions that select every message."""
EVERY_MESSAGE = frozenset(itertools.product(_ALL_EXPRESSIONS, (TAG, "", None)))
"""The expressions with their types that select every message, as most consumers do."""


@attrs.frozen
class PropertyTest:
    """Tests records by an expression; if queues have filter bit maps (storage.queues.queue_extension), by those first."""

    expression: MessageFilter

    def __call__(self, record: Buffer) -> bool:
        """Return True if the expression is true for the record's properties."""
        return self.expression.matches_properties(properties_of(record))

    def may_match(self, store_timestamp: int, bit_map: bytes) -> bool:
        """Return False only if the record's bit map excludes it."""
        return self.expression.matches_entry(None, store_timestamp, bit_map)


def own_selection(broker: FilterParts, header: PullMessageRequestHeader) -> Selection:
    """Return the selection of a pull that carries its subscription. Raises BrokerError."""
    kind = header.expression_type
    if not is_tag_type(kind):
        check_served(broker.options, kind)
    place = (header.topic, header.consumer_group)
    return expression_selection(broker, *place, header.subscription, kind, header.sub_version)


def expression_selection(
    broker: FilterParts, topic: str, group: str, expression: str | None, kind: str | None, version: int = 0
) -> Selection:
    """Return the selection by the expression in a request, even if enablePropertyFilter is off. Raises BrokerError."""
    try:
        if is_tag_type(kind):
            return Selection(codes_of_tags(topic, expression)) if expression not in _ALL_EXPRESSIONS else EVERYTHING
        subscription = build_subscription(topic, expression, kind, sub_version=version)
        data = request_filter(topic, group, expression or "", kind or "", version, broker.now_ms())
    except (SubscriptionError, ExpressionError) as error:
        raise BrokerError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"{PARSE_FAILED}: {error}") from error
    return _by_expression(broker, subscription, data)


def group_selection(broker: FilterParts, header: PullMessageRequestHeader, subscription: SubscriptionData) -> Selection:
    """Return the selection of a pull by its group's subscription from heartbeats. Raises BrokerError."""
    if is_tag_type(subscription.expression_type):
        return Selection(tags_of(subscription))
    check_served(broker.options, subscription.expression_type)
    data = broker.filters.get(header.topic, header.consumer_group)
    if data is None:
        remark = "The broker's consumer filter data is not exist!Your expression may be wrong!"
        raise BrokerError(ResponseCode.FILTER_DATA_NOT_EXIST, remark)
    if data.client_version < header.sub_version:
        raise BrokerError(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    return _by_expression(broker, subscription, data)


def check_served(options: BrokerOptions, expression_type: str | None) -> None:
    """Raise BrokerError for an expression while enablePropertyFilter is off, as it is by default."""
    if not options.enable_property_filter:
        remark = f"The broker does not support consumer to filter message by {expression_type}"
        raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)


def _by_expression(broker: FilterParts, subscription: SubscriptionData, data: ConsumerFilterData) -> Selection:
    test = MessageFilter(subscription, data, broker.filters, broker.options.filter_support_retry)
    return Selection(None, PropertyTest(test) if test.needs_properties else None)


def properties_of(record: Buffer) -> dict[str, str]:
    """Return a stored record's properties; empty if it is damaged, as in Apache."""
    try:
        spans = read_spans(record, 0, read_head(record, 0))
    except RecordError:
        return {}
    return decode_property_bytes(record[spans.properties : spans.end])


def tags_of(subscription: SubscriptionData) -> Collection[int] | None:
    """Return the tag hashes that match; None if all do."""
    if subscription.sub_string in _ALL_EXPRESSIONS or subscription.class_filter_mode:
        return None
    return subscription.code_set
