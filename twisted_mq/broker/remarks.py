"""Remarks that answers of several processors carry, word for word Apache's."""

from __future__ import annotations

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"
