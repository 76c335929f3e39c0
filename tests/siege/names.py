"""Names of the honest load."""

from __future__ import annotations

HONEST_TOPIC = "Siege"
POP_TOPIC = "SiegePop"
TRANSACTION_TOPIC = "SiegeTransactions"
DELAY_TOPIC = "SiegeDelayed"
TOPICS = (HONEST_TOPIC, POP_TOPIC, TRANSACTION_TOPIC, DELAY_TOPIC)
HONEST_GROUP = "siege"
POP_GROUP = "siege-pop"
HONEST_PRODUCERS = "siege-producers"
