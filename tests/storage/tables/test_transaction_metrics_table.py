from __future__ import annotations

from pathlib import Path

from tests.support.captures import stored_file
from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.protocol.bodies.metrics import TransactionMetric
from twisted_mq.storage.tables.small_tables import TransactionMetricsTable


def test_table_of_apaches_broker_is_read(tmp_path: Path) -> None:
    path = tmp_path / "transactionMetrics"
    path.write_bytes(stored_file("st", "config/transactionMetrics"))
    table = TransactionMetricsTable(str(path))
    assert table.load() == []
    assert table.counts == {"CapTx": TransactionMetric(count=0, time_stamp=1795216809723)}
    assert table.data_version == DataVersion(0, 1795216809723, 18)


def test_written_table_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "transactionMetrics"
    table = TransactionMetricsTable(str(path))
    assert (table.load(), table.counts) == ([], {})
    table.counts = {"T": TransactionMetric(count=3, time_stamp=9)}
    assert (table.save(), table.save()) == (True, False)
    again = TransactionMetricsTable(str(path))
    again.load()
    assert again.counts == table.counts
