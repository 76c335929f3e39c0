"""Errors of sends in several batches."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.client.core.errors import ClientError
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.messages.message import Message


class BatchIncomplete(ClientError):
    """Raised when some batches of many messages were stored, and the next one failed; `__cause__` says why."""

    def __init__(self, results: Sequence[SendResult], unsent: Sequence[Message], error: BaseException) -> None:
        super().__init__(
            f"{len(results)} batches were stored, the next one failed: {error}. `unsent` has the {len(unsent)} messages "
            "from that batch on; the failed batch may have been stored"
        )
        self.results = tuple(results)
        self.unsent = tuple(unsent)
