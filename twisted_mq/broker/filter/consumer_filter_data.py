"""Holds a group's filter on a topic (Apache: ConsumerFilterData), and reads and writes them all in consumerFilter.json.

{"filterDataByTopic":{"TopicA":{"groupFilterData":{"GroupA":{"bloomFilterData":{"bitNum":112,"bitPos":[7,30,61]},
 "bornTime":1795216968628,"clientVersion":1795216968000,"consumerGroup":"GroupA","dead":false,"deadTime":0,
 "expression":"a > 5","expressionType":"SQL92","topic":"TopicA"}},"topic":"TopicA"}}}
"""

from __future__ import annotations

import attrs

from twisted_mq.broker.filter.bloom_filter import BloomFilterData
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.expression import CompiledExpression, compile_expression
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.bodies.types import Int32, Int64
from twisted_mq.protocol.messages.subscription import SQL92
from twisted_mq.storage.tables.config_tables import ConfigTable

_log = Logger()


@attrs.define(eq=False)
class ConsumerFilterData:
    """A group's filter on a topic. Times are ms; `client_version` is the time when the client made the subscription.

    `dead_time` is when the group went offline, 0 while it is online. `made_by` is the address of the client that
    registered it, empty after a restart.
    """

    consumer_group: str
    topic: str
    expression: str
    expression_type: str
    born_time: int
    client_version: int
    bloom_filter_data: BloomFilterData | None = None
    dead_time: int = 0
    _compiled: CompiledExpression | ExpressionError | None = None
    made_by: str = ""

    @property
    def is_dead(self) -> bool:
        return self.dead_time >= self.born_time

    def was_there_at(self, store_timestamp: int) -> bool:
        """Return True if a message stored then was compared with this filter, so that its bit map is valid (Apache:
        isMsgInLive).
        """
        return store_timestamp > self.born_time

    @property
    def compiled(self) -> CompiledExpression | None:
        """Return the expression as a function, compiled at the first use; None, as in Apache, for a stored one that does
        not compile.
        """
        if self._compiled is None:
            try:
                self._compiled = compile_filter(self.expression_type, self.expression)
            except ExpressionError as error:
                self._compiled = error
                _log.error(
                    "stored filter does not compile: group={g} topic={t} error={e}",
                    g=self.consumer_group, t=self.topic, e=str(error),
                )  # fmt: skip
        return self._compiled if isinstance(self._compiled, CompiledExpression) else None


def compile_filter(expression_type: str | None, expression: str | None) -> CompiledExpression:
    """Compile the expression of a subscription. Raises ExpressionError, also for an unknown type of filter."""
    if expression_type != SQL92:
        raise ExpressionError(expression or "", 0, f"no filter for expressions of type {expression_type}")
    if not expression:
        raise ExpressionError("", 0, "an empty expression")
    return compile_expression(expression)


@attrs.frozen
class _Positions:
    bit_pos: list[Int32] = attrs.field(factory=list)
    bit_num: Int32 = 0


@attrs.frozen
class _Stored:
    consumer_group: str = ""
    topic: str = ""
    expression: str = ""
    expression_type: str = ""
    born_time: Int64 = 0
    dead_time: Int64 = 0
    dead: bool = False
    client_version: Int64 = 0
    bloom_filter_data: _Positions | None = None


@attrs.frozen
class _Topic:
    group_filter_data: dict[str, _Stored] = attrs.field(factory=dict)
    topic: str = ""


@attrs.frozen
class _Filters:
    filter_data_by_topic: dict[str, _Topic] = attrs.field(factory=dict)


class ConsumerFilterTable(ConfigTable[_Filters]):
    """The table in consumerFilter.json. `filters` maps topic to group to data; the owner changes and saves it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(_Filters, data))
        self.filters: dict[str, dict[str, ConsumerFilterData]] = {}

    def _fill(self, body: _Filters) -> None:
        stored = body.filter_data_by_topic.items()
        self.filters = {
            topic: {group: _from_stored(one) for group, one in groups.group_filter_data.items()}
            for topic, groups in stored
        }

    def _body(self) -> _Filters:
        topics: dict[str, _Topic] = {}
        for topic, groups in sorted(self.filters.items()):
            topics[topic] = _Topic({group: _to_stored(data) for group, data in sorted(groups.items())}, topic)
        return _Filters(topics)


def _from_stored(stored: _Stored) -> ConsumerFilterData:
    positions = stored.bloom_filter_data
    data = None if positions is None else BloomFilterData(tuple(positions.bit_pos), positions.bit_num)
    return ConsumerFilterData(
        consumer_group=stored.consumer_group,
        topic=stored.topic,
        expression=stored.expression,
        expression_type=stored.expression_type,
        born_time=stored.born_time,
        client_version=stored.client_version,
        bloom_filter_data=data,
        dead_time=stored.dead_time,
    )


def _to_stored(data: ConsumerFilterData) -> _Stored:
    made = data.bloom_filter_data
    positions = None if made is None else _Positions(list(made.bit_pos), made.bit_num)
    return _Stored(
        consumer_group=data.consumer_group,
        topic=data.topic,
        expression=data.expression,
        expression_type=data.expression_type,
        born_time=data.born_time,
        dead_time=data.dead_time,
        dead=data.is_dead,
        client_version=data.client_version,
        bloom_filter_data=positions,
    )
