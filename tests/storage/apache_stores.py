"""Data directories that Apache's broker wrote, and what Apache says is in them (interop/captures/store)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parents[2] / "interop" / "captures" / "store"
FILE_SIZES = {
    "st": (65536, 400),
    "livecopy": (131072, 2000),
    "cut_tail": (131072, 2000),
    "ha_master": (1048576, 2000),
    "ha_slave": (1048576, 2000),
}
"""Bytes of a commit log file and of a consume queue file, from the captures' manifest."""

INDEX_SIZES = {
    "st": (40, 120),
    "livecopy": (200, 800),
    "cut_tail": (200, 800),
    "ha_master": (50, 200),
    "ha_slave": (50, 200),
}
"""Slots and entries of an index file."""


def unpack(name: str, root: Path) -> Path:
    """The store's directory below `root`."""
    with tarfile.open(CAPTURES / f"{name}.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root / name


def sizes_of(name: str) -> dict[str, int]:
    """The configuration that a store was written with."""
    log_size, queue_size = FILE_SIZES[name]
    slots, entries = INDEX_SIZES[name]
    return {
        "mapped_file_size_commit_log": log_size,
        "mapped_file_size_consume_queue": queue_size,
        "max_hash_slot_num": slots,
        "max_index_num": entries,
    }


def expected(name: str, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind that Apache's program printed for a store."""
    lines = (CAPTURES / f"{name}.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["kind"] == kind]
