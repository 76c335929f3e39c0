"""Settings of ordered producers and consumers. Times in seconds."""

from __future__ import annotations

import attrs

from twisted_mq.client.ordered.pipeline import Window
from twisted_mq.client.producing.message_checks import SendLimits


@attrs.frozen(kw_only=True)
class OrderedOptions:
    """Of an OrderedProducer."""

    send_timeout_seconds: float = 30.0
    """For how long a send waits for its turn, a head and the acknowledgement, together."""
    answer_timeout_seconds: float = 6.0
    """For how long a broker's answer is awaited before the message is sent again."""
    stand_by: bool = False
    """Whether sends wait while another producer leads; otherwise they fail with NotLeader."""
    window: Window = attrs.Factory(Window)
    """How much of a queue is on its way to its broker at once."""
    waiting_messages: int = 10_000
    """How many messages of a queue may wait to be acknowledged; one more fails with TooMuchWaits."""
    waiting_bytes: int = 64 * 1024 * 1024
    limits: SendLimits = attrs.Factory(SendLimits)
