"""Settings of an ordered consumer. Times in seconds."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class OrderedConsumerOptions:
    """Options of an OrderedConsumer."""

    consume_message_batch_max_size: int = 1
    """The most messages that a listener call gets."""
    consume_timeout_seconds: float = 15 * 60
    """A listener's Deferred that has not fired by then is cancelled, and its messages are consumed again."""
    suspend_queue_seconds: float = 1.0
    """The pause of a queue after its messages were refused; the same messages then come again."""
    pull_batch_size: int = 32
    pull_batch_size_bytes: int = 256 * 1024
