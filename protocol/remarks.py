"""Remarks that several answers carry, word for word Apache's."""

from __future__ import annotations

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"
"""With SYSTEM_BUSY: too much waits already."""
REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"
"""With SYSTEM_BUSY: no such request is taken now."""
