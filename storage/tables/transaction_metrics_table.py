"""config/transactionMetrics: the number of undecided half messages of each topic (Apache: TransactionMetrics).

{"dataVersion":{"counter":18,"stateVersion":0,"timestamp":1795216809723},
 "transactionCount":{"CapTx":{"count":0,"timeStamp":1795216809723}}}
"""

from __future__ import annotations

from twisted_mq.protocol.bodies import DataVersion, TransactionMetricsSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.bodies.metrics import TransactionMetric
from twisted_mq.storage.tables.config_tables import ConfigTable


class TransactionMetricsTable(ConfigTable[TransactionMetricsSerializeWrapper]):
    """`counts` maps a real topic to count and time of its last change; the owner changes it and saves."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(TransactionMetricsSerializeWrapper, data))
        self.counts: dict[str, TransactionMetric] = {}

    def _fill(self, body: TransactionMetricsSerializeWrapper) -> None:
        self.counts = dict(body.transaction_count)
        self.data_version = body.data_version or DataVersion()

    def _body(self) -> TransactionMetricsSerializeWrapper:
        return TransactionMetricsSerializeWrapper(self.counts, self.data_version)
