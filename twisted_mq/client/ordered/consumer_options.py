"""Settings of an ordered consumer. Times in seconds."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class OrderedConsumerOptions:
    """Of an OrderedConsumer."""

    consume_message_batch_max_size: int = 1
    """Messages a listener call gets at most."""
    consume_timeout_seconds: float = 15 * 60
    """A listener's Deferred that has not fired by then is cancelled, and its messages are consumed again."""
    suspend_queue_seconds: float = 1.0
    """How long a queue rests after its messages were refused; the same messages come again then."""
    pull_batch_size: int = 32
    pull_batch_size_bytes: int = 256 * 1024
