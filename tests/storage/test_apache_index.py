"""Apache's index files answer here as they do there, and an index built from the same log answers the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.storage.apache_stores import FILE_SIZES, expected, sizes_of, unpack
from tests.storage.conftest import OpenFileStore
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.message_store import FileMessageStore

ALL = sorted(FILE_SIZES)
EVER = 1 << 62


def answers(store: FileMessageStore, lines: list[dict[str, Any]]) -> list[list[int]]:
    """The physical offsets found for each of Apache's questions."""
    found = []
    for line in lines:
        result = store.query_message(line["topic"], line["key"], line["maxNum"], 0, EVER)
        found.append([decode_message(record).physical_offset for record in result.records])
    return found


def apaches(lines: list[dict[str, Any]]) -> list[list[int]]:
    """Return the records that Apache found, each once.

    Its start after a crash indexes the last record of a kept file again: so one of livecopy is found twice there.
    """
    return [list(dict.fromkeys(line["physicalOffsets"])) for line in lines]


@pytest.mark.parametrize("name", ALL)
def test_apaches_index_gives_apaches_answers(open_store: OpenFileStore, tmp_path: Path, name: str) -> None:
    store = open_store(unpack(name, tmp_path), **sizes_of(name))
    lines = expected(name, "index_query")
    assert lines
    assert answers(store, lines) == apaches(lines)


@pytest.mark.parametrize("name", ALL)
def test_index_built_from_apaches_log_gives_apaches_answers(
    open_store: OpenFileStore, tmp_path: Path, name: str
) -> None:
    root = unpack(name, tmp_path)
    shutil.rmtree(root / "index")
    store = open_store(root, **sizes_of(name))
    lines = expected(name, "index_query")
    assert answers(store, lines) == apaches(lines)


def test_index_built_from_apaches_log_is_apaches_byte_for_byte(open_store: OpenFileStore, tmp_path: Path) -> None:
    """`st` was never killed, so its index files hold what its log says, once."""
    root = unpack("st", tmp_path)
    apaches = [path.read_bytes() for path in sorted((root / "index").iterdir())]
    shutil.rmtree(root / "index")
    store = open_store(root, **sizes_of("st"))
    store.build_index(EVER)
    store.close()
    assert [path.read_bytes() for path in sorted((root / "index").iterdir())] == apaches
