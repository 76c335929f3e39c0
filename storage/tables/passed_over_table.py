"""config/orderPassedOver.json: messages of ordered queues that a group skipped without having consumed them here.

{"passedOver":[{"count":3,"epoch":4,"firstOffset":22,"group":"G","queueId":0,"reason":"...","timeMs":1795216968628,"topic":"T"}]}
"""

from __future__ import annotations

import attrs

from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.bodies.types import Int32, Int64
from twisted_mq.storage.tables.config_tables import ConfigTable

PASSED_OVER_FILE = "orderPassedOver.json"
MOST_ROWS = 1_000
"""The most rows; the newest are kept."""


@attrs.frozen
class PassOver:
    """A run of `count` skipped messages of one epoch, from a queue offset on."""

    topic: str = ""
    queue_id: Int32 = 0
    group: str = ""
    epoch: Int64 = 0
    first_offset: Int64 = 0
    count: Int64 = 0
    reason: str = ""
    time_ms: Int64 = 0


@attrs.frozen
class _Rows:
    passed_over: list[PassOver] = attrs.field(factory=list)


def decode_rows(text: bytes) -> list[PassOver]:
    """Return the rows of a file. Raises BodyError."""
    return list(decode_body(_Rows, text).passed_over)


class PassedOverTable(ConfigTable[_Rows]):
    """`passed_over` has the rows, oldest first."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(_Rows, data))
        self.passed_over: list[PassOver] = []

    def _fill(self, body: _Rows) -> None:
        self.passed_over = list(body.passed_over)

    def _body(self) -> _Rows:
        return _Rows(self.passed_over[-MOST_ROWS:])
