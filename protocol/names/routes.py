"""Names that routes are made of (Apache: MixAll.MASTER_ID, NamesrvUtil)."""

from __future__ import annotations

MASTER_ID = 0
"""A master's broker id; slaves have others."""
ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""The name servers' namespace of strictly ordered topics: topic -> "broker:queues;..."."""
