"""Reads the recordings under interop/captures (see the README there)."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parents[2] / "interop" / "captures"

SCENARIOS = sorted(path.stem for path in (CAPTURES / "remoting").glob("*.frames"))
STORES = ("st", "livecopy", "cut_tail", "ha_master", "ha_slave")
HA_STREAMS = sorted(path.stem for path in (CAPTURES / "ha").glob("*.m2s"))


def frames(scenario: str) -> bytes:
    """All frames of a remoting scenario, one behind the other."""
    return (CAPTURES / "remoting" / f"{scenario}.frames").read_bytes()


def frame_index(scenario: str) -> list[dict[str, Any]]:
    """Return the recorded entry of each frame, in order."""
    return [dict(line) for line in json.loads((CAPTURES / "remoting" / f"{scenario}.json").read_text())]


def expected(store: str) -> list[dict[str, Any]]:
    """Return the data that Apache's store read from the recorded directory."""
    lines = (CAPTURES / "store" / f"{store}.jsonl").read_text().splitlines()
    return [dict(json.loads(line)) for line in lines]


def expected_messages(store: str) -> list[dict[str, Any]]:
    """The lines of kind `message`."""
    return [line for line in expected(store) if line["kind"] == "message"]


def unpack_store(store: str, directory: Path) -> Path:
    """A copy of the recorded store directory in `directory`."""
    with tarfile.open(CAPTURES / "store" / f"{store}.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory / store


def commit_log_files(store: str) -> dict[int, bytes]:
    """The commit log of a recorded store: file name as a number, and content."""
    found = {}
    with tarfile.open(CAPTURES / "store" / f"{store}.tar.gz") as archive:
        for member in archive:
            path = Path(member.name)
            if member.isfile() and path.parent.name == "commitlog":
                content = archive.extractfile(member)
                assert content is not None
                found[int(path.name)] = content.read()
    return dict(sorted(found.items()))


def stored_file(store: str, name: str) -> bytes:
    """Return a file of a recorded store; `name` is relative to the store's directory."""
    with tarfile.open(CAPTURES / "store" / f"{store}.tar.gz") as archive:
        content = archive.extractfile(f"{store}/{name}")
        assert content is not None
        return content.read()


def stored_records(store: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Every message line with the bytes of its record."""
    files = commit_log_files(store)
    size = len(next(iter(files.values())))
    for line in expected_messages(store):
        start = line["commitLogOffset"]
        position = start % size
        yield line, files[start - position][position : position + line["storeSize"]]
