"""The walk beside a broker that writes on."""

from __future__ import annotations

from pathlib import Path

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.columns.walk import walk_stretch
from twisted_mq.storage.files.mapped_log import MappedLog

RECORD = 91 + 6 + 100


def test_a_record_completed_between_proof_and_search_is_read(open_store: OpenFileStore, tmp_path: Path) -> None:
    """Before, it was skipped as damage although it was intact."""
    put(open_store(), *[message(body=bytes([number]) * 100) for number in range(3)])
    path = tmp_path / "store" / "commitlog" / f"{0:020d}"
    whole = path.read_bytes()

    def write(data: bytes) -> None:
        with path.open("r+b") as file:
            file.write(data)

    class Completed(MappedLog):
        def next_record(self, position: int, end: int) -> int | None:
            write(whole)
            return super().next_record(position, end)

    write(whole[:RECORD] + bytes(2 * RECORD))
    log = Completed(str(path), 0)
    pieces = list(walk_stretch(log, 0, log.size))
    found = [start for piece in pieces if isinstance(piece, RecordColumns) for start in piece.starts.tolist()]
    assert found == [0, RECORD, 2 * RECORD]
