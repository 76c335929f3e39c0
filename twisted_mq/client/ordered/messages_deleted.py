"""The event of messages that were deleted before a consumer got them."""

from __future__ import annotations

import attrs


@attrs.frozen
class MessagesDeleted:
    """A broker's disk was full: it deleted messages of an ordered queue before the consumer group consumed them.

    The offsets from `first_offset` to before `next_offset` are gone at that broker group. Those of the term that began after
    `first_offset` were acknowledged messages. Consumption continues at `next_offset`.
    """

    consumer_group: str
    topic: str
    queue_id: int
    broker_name: str
    epoch: int
    first_offset: int
    next_offset: int
