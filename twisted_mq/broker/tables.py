"""Holds the broker's tables in its config folder, except topics, groups and offsets, which have their managers."""

from __future__ import annotations

import os

import attrs

from twisted_mq.broker.pop.order_info import ConsumerOrderInfoTable
from twisted_mq.storage.tables.escaped_table import ESCAPED_FILE, EscapedTable
from twisted_mq.storage.tables.passed_over_table import PASSED_OVER_FILE, PassedOverTable
from twisted_mq.storage.tables.small_tables import DelayOffsetTable, MessageRequestModeTable, TransactionMetricsTable


@attrs.frozen
class BrokerTables:
    """The loaded tables, each kind once."""

    request_modes: MessageRequestModeTable
    transaction_metrics: TransactionMetricsTable
    orders: ConsumerOrderInfoTable
    delays: DelayOffsetTable
    passed_over: PassedOverTable
    escaped: EscapedTable

    @classmethod
    def load(cls, folder: str) -> BrokerTables:
        """Load the tables of a config folder. A damaged file falls back to its .bak, a missing one is empty."""
        tables = cls(
            MessageRequestModeTable(os.path.join(folder, "messageRequestMode.json")),
            TransactionMetricsTable(os.path.join(folder, "transactionMetrics")),
            ConsumerOrderInfoTable(os.path.join(folder, "consumerOrderInfo.json")),
            DelayOffsetTable(os.path.join(folder, "delayOffset.json")),
            PassedOverTable(os.path.join(folder, PASSED_OVER_FILE)),
            EscapedTable(os.path.join(folder, ESCAPED_FILE)),
        )
        for table in attrs.astuple(tables, recurse=False):
            table.load()
        return tables
