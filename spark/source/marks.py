"""Marks of the progress in a store, with proof that its log is still the one that was read.

A mark has the reached physical offset, and size, CRC and store time of the last record before it. Streams keep marks in their
checkpoints, jobs in their progress. A store is identified by that record, not by its path, so reading continues after it was
moved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from twisted_mq.spark.errors import DataLost, LogFileGone
from twisted_mq.spark.fingerprints import Fingerprint, fingerprint_of
from twisted_mq.spark.source.log_stretch import Damage, read_stretch
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.stores import LogFile, Store

log = logging.getLogger(__name__)
Logs = Mapping[Store, Sequence[LogFile]]
"""The log files of each store, in order."""


@attrs.frozen
class Mark:
    """All records that begin before the physical offset `reached` were read; `last` is the last of them.

    `last` is None where no record was read, and in marks of earlier releases, which kept `reached` alone.
    """

    reached: int
    last: Fingerprint | None = None
    store: str | None = None
    broker_name: str | None = None
    lost: int | None = None
    """Number of lost bytes of the log that a stream with failOnDataLoss=false skipped; None for none."""

    def as_json(self) -> dict[str, object]:
        """Return the mark for JSON; fields without a value are left out."""
        return attrs.asdict(self, filter=lambda _, value: value is not None)


def parse_mark(kept: object) -> Mark:
    """Parse a mark from JSON: an object, or from earlier releases a plain number. Raises ValueError, TypeError, KeyError."""
    if not isinstance(kept, dict):
        return Mark(_natural(kept))
    last = kept.get("last")
    known = None if last is None else Fingerprint(**{name: int(value) for name, value in last.items()})
    lost = kept.get("lost")
    return Mark(_natural(kept["reached"]), known, kept.get("store"), kept.get("broker_name"), lost and _natural(lost))


def _natural(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a physical offset")
    return value


def mark_at(store: Store, files: Sequence[LogFile], reached: int) -> Mark:
    """Return the mark of a store that was read up to a physical offset. Raises LogFileGone."""
    behind = [file for file in files if file.first_offset < reached]
    found = (_last_before(OpenLog(store, file), reached) for file in reversed(behind))
    return Mark(reached, next((one for one in found if one is not None), None), store.name, store.broker_name)


def _last_before(opened: OpenLog, reached: int) -> Fingerprint | None:
    """Return the last record of a file that begins before `reached`, or None."""
    end = min(reached - opened.first_offset, opened.limit)
    last = None
    for piece in read_stretch(opened, opened.proven_before(end - 1), end):
        if not isinstance(piece, Damage):
            last = int(piece.physical_offsets[-1]) - opened.first_offset
    return None if last is None else _fingerprint(opened, last)


def _fingerprint(opened: OpenLog, position: int) -> Fingerprint | None:
    """Return the fingerprint of the record that begins there; None without a valid record."""
    size = opened.record_size(position)
    return fingerprint_of(opened.window(position, size).data) if size else None


def is_kept(store: Store, files: Sequence[LogFile], last: Fingerprint) -> bool | None:
    """Return True if the log has this record at its place; None if no file of the log has the place."""
    file = next((file for file in files if file.first_offset <= last.offset < file.end), None)
    if file is None:
        return None
    try:
        opened = OpenLog(store, file)
    except LogFileGone:
        return None
    return _fingerprint(opened, last.offset - file.first_offset) == last


def keys_of(kept: Mapping[str, Mark], logs: Logs, key_of: Callable[[Store], str]) -> dict[Store, str]:
    """Return the key in `kept` of each store that was read before; other stores are left out.

    First choice is a mark of the same path whose last record is in the log. Second is a mark of another path whose last record is
    in the log: the store was moved. Last is the same path, independent of the log.
    """
    keys: dict[Store, str] = {}

    def is_here(store: Store, key: str) -> bool:
        return kept[key].store == store.name if kept[key].store is not None else key == key_of(store)

    def is_same(store: Store, key: str) -> bool:
        last = kept[key].last
        return last is not None and is_kept(store, logs[store], last) is True

    def is_moved(store: Store, key: str) -> bool:
        names = {kept[key].broker_name, store.broker_name} - {None}
        return len(names) < 2 and is_same(store, key)

    def is_unchanged(store: Store, key: str) -> bool:
        return is_here(store, key) and is_same(store, key)

    for fits in (is_unchanged, is_moved, is_here):
        for store in [store for store in logs if store not in keys]:
            free = [key for key in reversed(list(kept)) if key not in keys.values()]
            found = next((key for key in free if fits(store, key)), None)
            if found is not None:
                keys[store] = found
    return keys


def go_on(store: Store, files: Sequence[LogFile], mark: Mark, end: int, fail: bool) -> int:
    """Return the physical offset at which reading continues; `end` is the log's end. Bytes deleted by retention are handled by
    `missing_bytes`.

    Raises DataLost if the log ends before the mark, or has another record at the last one's place. Without `fail` that is logged,
    and reading starts again at the log's first record: nothing is skipped, and rows may be repeated.
    """
    change = _change(store, files, mark, end)
    if change is None:
        return mark.reached
    what = f"broker {store.broker_name or 'unnamed'}, store {store.name}: {change}"
    if fail:
        raise DataLost(what)
    first = files[0].first_offset if files else 0
    log.warning("%s; reading starts again at physical offset %d", what, first)
    return first


def _change(store: Store, files: Sequence[LogFile], mark: Mark, end: int) -> str | None:
    """Return the difference from the log that was read; None if the log continues it."""
    if mark.reached > end:
        read = f"it was read up to physical offset {mark.reached}"
        return f"{read}, the log ends at {end}: {mark.reached - end} bytes that were read are not there"
    if mark.last is not None and is_kept(store, files, mark.last) is False:
        return f"it was read up to physical offset {mark.reached}, the record at {mark.last.offset} has changed"
    return None


def unused_key(key: str, kept: Iterable[str]) -> str:
    """Return the key, with a number after it if `kept` has it."""
    taken, number, found = set(kept), 1, key
    while found in taken:
        number += 1
        found = f"{key}.{number}"
    return found
