"""What a broker keeps in its config folder for its own parts; topics, groups and offsets have their managers."""

from __future__ import annotations

import os

import attrs

from twisted_mq.broker.pop.order_info import ConsumerOrderInfoTable
from twisted_mq.storage.tables.delay_offset_table import DelayOffsetTable
from twisted_mq.storage.tables.passed_over_table import PASSED_OVER_FILE, PassedOverTable
from twisted_mq.storage.tables.request_mode_table import MessageRequestModeTable
from twisted_mq.storage.tables.transaction_metrics_table import TransactionMetricsTable


@attrs.frozen
class BrokerTables:
    """One table of each, loaded."""

    request_modes: MessageRequestModeTable
    transaction_metrics: TransactionMetricsTable
    orders: ConsumerOrderInfoTable
    delays: DelayOffsetTable
    passed_over: PassedOverTable

    @classmethod
    def load(cls, folder: str) -> BrokerTables:
        """Those of a config folder; a damaged file falls back to its .bak, a missing one is empty."""
        tables = cls(
            MessageRequestModeTable(os.path.join(folder, "messageRequestMode.json")),
            TransactionMetricsTable(os.path.join(folder, "transactionMetrics")),
            ConsumerOrderInfoTable(os.path.join(folder, "consumerOrderInfo.json")),
            DelayOffsetTable(os.path.join(folder, "delayOffset.json")),
            PassedOverTable(os.path.join(folder, PASSED_OVER_FILE)),
        )
        for table in attrs.astuple(tables, recurse=False):
            table.load()
        return tables
