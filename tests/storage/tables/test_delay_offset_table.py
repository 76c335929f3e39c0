from __future__ import annotations

from pathlib import Path

from tests.support.captures import stored_file
from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.storage.tables.small_tables import DelayOffsetTable


def test_table_of_apaches_broker_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config" / "delayOffset.json"
    path.parent.mkdir()
    path.write_bytes(stored_file("st", "config/delayOffset.json"))
    table = DelayOffsetTable(str(path))
    assert table.load() == []
    assert (table.offsets, table.data_version) == ({1: 20, 2: 1, 9: 0}, DataVersion(0, 1795216985322, 7))
    assert table.log_offset is None


def test_written_table_has_apaches_form_and_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "delayOffset.json"
    table = DelayOffsetTable(str(path))
    assert (table.load(), table.offsets, table.log_offset) == ([], {}, 0)
    table.offsets, table.data_version, table.log_offset = {1: 20, 9: 0}, DataVersion(0, 5, 7), 5740
    assert (table.save(), table.save()) == (True, False)
    assert path.read_bytes() == (
        b'{\n\t"dataVersion":{\n\t\t"counter":7,\n\t\t"stateVersion":0,\n\t\t"timestamp":5\n\t},'
        b'\n\t"logOffset":5740,\n\t"offsetTable":{1:20,9:0}\n}'
    )
    again = DelayOffsetTable(str(path))
    again.load()
    assert (again.offsets, again.data_version, again.log_offset) == (table.offsets, table.data_version, 5740)
