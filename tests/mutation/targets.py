"""The packages whose sources are mutated, and the tests that may notice it."""

from __future__ import annotations

PACKAGES = (
    "protocol/layouts",
    "protocol/wire",
    "storage/appending",
    "storage/recovery",
    "twisted_mq/ordering",
    "twisted_mq/broker/processors",
)
TESTS = (
    "tests/protocol",
    "tests/storage",
    "tests/twisted_mq/ordering",
    "tests/twisted_mq/broker",
    "tests/twisted_mq/coordination",
    "tests/twisted_mq/remoting",
    "tests/twisted_mq/client",
    "tests/crash",
)
"""Tests of other folders reach these packages through servers alone, and are too slow for this."""
