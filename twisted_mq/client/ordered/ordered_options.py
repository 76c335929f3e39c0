"""Settings of ordered producers and consumers. Times in seconds."""

from __future__ import annotations

import attrs

from twisted_mq.client.ordered.pipeline import Window
from twisted_mq.client.producing.producer_options import SendLimits


@attrs.frozen(kw_only=True)
class OrderedOptions:
    """Options of an OrderedProducer."""

    send_timeout_seconds: float = 30.0
    """The time for waiting for a turn, for a head and for the acknowledgement, together."""
    answer_timeout_seconds: float = 6.0
    """The time after which an unanswered message is sent again."""
    stand_by: bool = False
    """Let sends wait while another producer leads; otherwise they fail with NotLeader."""
    window: Window = attrs.Factory(Window)
    """The limits of a queue's messages in flight to its broker."""
    waiting_messages: int = 10_000
    """The most messages of a queue that wait for an acknowledgement; a further one fails with TooMuchWaits."""
    waiting_bytes: int = 64 * 1024 * 1024
    limits: SendLimits = attrs.Factory(SendLimits)


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
