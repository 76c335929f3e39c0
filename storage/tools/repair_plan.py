"""Plans the repair of a log, without writing.

A broker's recovery cuts the log at the first byte that is no record. So every gap between intact records is closed:

    move    an intact record that lies at another place than its own, because bytes before it were inserted or lost
    fill    a rolled back message, which no queue and no index leads to, over damaged bytes between records
    blank   the record that ends a file, over damaged bytes up to the file's end, if other files follow
    zero    zeros after the last intact record of the log
    resize  a file that is longer or shorter than the others

All offsets are physical.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator

import attrs

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record import BLANK_BYTES, SMALLEST_RECORD, RecordHead, read_head, read_spans
from twisted_mq.protocol.layouts.record_codec import check_body
from twisted_mq.storage.columns.walk import Gap, LogFiles, walk_log
from twisted_mq.storage.files.files_at_rest import FileAtRest
from twisted_mq.storage.files.mapped_log import MappedLog

LARGEST_FILL = 4 << 20
"""The longest fill: Apache's recovery takes memory for a whole record."""
Advance = Callable[[int], None]


@attrs.frozen
class RepairStep:
    """A change; `kind` as above. A move takes `length` bytes from `source`; a fill has the time `timestamp`, ms."""

    kind: str
    offset: int
    length: int
    source: int = -1
    timestamp: int = 0


@attrs.define
class FilePlan:
    """The changes of a log file. `damaged` are its parts to keep, as (physical offset, length, reason)."""

    path: str
    first_offset: int
    actual_size: int
    size: int
    damaged: list[tuple[int, int, str]] = attrs.field(factory=list)
    steps: list[RepairStep] = attrs.field(factory=list)


@attrs.define
class LogPlan:
    """The changes of the log; `files` has only those that change."""

    files: list[FilePlan] = attrs.field(factory=list)
    intact_records: int = 0
    moved_records: int = 0
    damaged_bytes: int = 0
    end_offset: int = 0


@attrs.define
class _Walked:
    """The gaps of the log, and the store time of the record before each."""

    gaps: list[Gap] = attrs.field(factory=list)
    timestamps: list[int] = attrs.field(factory=list)
    end_offset: int = 0
    records: int = 0


def plan_log(files: LogFiles, advance: Advance = lambda amount: None) -> LogPlan:
    """Walk the log and plan a change for each gap."""
    walked = _walk(files, advance)
    plan = LogPlan(intact_records=walked.records, end_offset=max(walked.end_offset, files.min_offset))
    by_file: dict[int, list[tuple[int, int, str, int]]] = {}
    for gap, timestamp in zip(walked.gaps, walked.timestamps, strict=True):
        for start, end in _by_file(files, gap):
            first = start - start % files.file_size
            by_file.setdefault(first, []).append((start, end, gap.reason, timestamp))
    known = {file.first_offset: file for file in files.files}
    planned = []
    for first in sorted(by_file.keys() | {file.first_offset for file in files.files if file.size != files.file_size}):
        file = known.get(first, FileAtRest(files.path_of(first), first, 0))
        planned.append(_plan_moves(files, file, by_file.get(first, ())))
    plan.end_offset = max([plan.end_offset, *(step.offset + step.length for one, _ in planned for step in one.steps)])
    for one, gaps in planned:
        plan.moved_records += len(one.steps)
        _close(one, gaps, plan.end_offset)
        plan.damaged_bytes += sum(length for _, length, _ in one.damaged)
        if one.steps or one.damaged or one.actual_size != one.size:
            plan.files.append(one)
    return plan


def _walk(files: LogFiles, advance: Advance) -> _Walked:
    walked, timestamp = _Walked(), 0
    for part in walk_log(files):
        if isinstance(part, Gap):
            walked.gaps.append(part)
            walked.timestamps.append(timestamp)
            advance(part.length)
            continue
        if not timestamp:
            walked.timestamps = [int(part.store_timestamp[0])] * len(walked.timestamps)
        timestamp = int(part.store_timestamp[-1])
        walked.records += len(part)
        walked.end_offset = int(part.physical_offsets[-1] + part.sizes[-1])
        advance(int(part.sizes.sum()))
    return walked


def _by_file(files: LogFiles, gap: Gap) -> Iterator[tuple[int, int]]:
    """Yield the parts of a gap, each in one file."""
    start = gap.physical_offset
    while start < gap.end:
        end = min(gap.end, start - start % files.file_size + files.file_size)
        yield start, end
        start = end


Stretch = tuple[int, int, str, int]
"""start, end, reason, store time before."""


def _plan_moves(files: LogFiles, file: FileAtRest, gaps: list[Stretch] | tuple[()]) -> tuple[FilePlan, list[Stretch]]:
    """Return a file's plan with its moves, and the gaps that are left to be closed."""
    plan = FilePlan(file.path, file.first_offset, file.size, files.file_size)
    if not file.size:
        return plan, list(gaps)
    log = MappedLog(file.path, file.first_offset)
    here = [(start - file.first_offset, end - file.first_offset) for start, end, _, _ in gaps]
    sources = [*here, *([(files.file_size, log.size)] if log.size > files.file_size else [])]
    moves = _displaced(log, sources, here)
    plan.steps = [
        RepairStep("move", log.first_offset + to, size, log.first_offset + place) for to, size, place in moves
    ]
    for start, end, reason, _ in gaps:
        kept = log.written_end(start - file.first_offset, end - file.first_offset) + file.first_offset
        moved = (step.source + step.length for step in plan.steps if start <= step.source < end)
        kept = max([kept, *moved])
        if kept > start:
            plan.damaged.append((start, kept - start, reason))
    if log.size > files.file_size:
        beyond = file.first_offset + files.file_size
        plan.damaged.append((beyond, log.size - files.file_size, "past the end that the file should have"))
    left = [one for gap in gaps for one in _without(gap, plan.steps)]
    return plan, left


def _displaced(
    log: MappedLog, sources: list[tuple[int, int]], gaps: list[tuple[int, int]]
) -> list[tuple[int, int, int]]:
    """Return (own position, size, present position) of records in `sources` whose own place is in a gap; none overlap."""
    found: list[tuple[int, int, int]] = []
    for start, end in sources:
        behind = start
        for place in log.marks(start, end):
            head = _whole_record(log, place) if place >= behind else None
            if head is None:
                continue
            to = head.physical_offset - log.first_offset
            if to != place and any(begin <= to and to + head.size <= finish for begin, finish in gaps):
                found.append((to, head.size, place))
                behind = place + head.size
    return list(_apart(sorted(found)))


def _apart(moves: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    end = -1
    for move in moves:
        if move[0] >= end:
            yield move
            end = move[0] + move[1]


def _whole_record(log: MappedLog, position: int) -> RecordHead | None:
    """Return the head of a record with right lengths and body, whatever place it names; None without one."""
    try:
        head = read_head(log.data, position)
        spans = read_spans(log.data, position, head)
        check_body(log.data, position, head, spans)
    except RecordError:
        return None
    topic = log.data[spans.topic : spans.topic_end]
    likely = topic.isascii() and topic.decode("ascii").isprintable()
    return head if likely and head.queue_id >= 0 and head.queue_offset >= 0 else None


def _without(gap: Stretch, moves: list[RepairStep]) -> Iterator[Stretch]:
    """Yield the parts of a gap that the moves leave."""
    start, end, reason, timestamp = gap
    first = bisect.bisect_left(moves, start, key=lambda move: move.offset)
    for move in moves[first:]:
        if move.offset >= end:
            break
        if move.offset > start:
            yield start, move.offset, reason, timestamp
        start = move.offset + move.length
    if start < end:
        yield start, end, reason, timestamp


def _close(plan: FilePlan, gaps: list[Stretch], end_offset: int) -> None:
    """Close the gaps: fill them, end the file, or zero the rest."""
    file_end = plan.first_offset + plan.size
    for start, end, _, timestamp in gaps:
        if start >= end_offset:
            plan.steps.append(RepairStep("zero", start, end - start))
        elif end == file_end:
            if end - start >= BLANK_BYTES:
                plan.steps.append(RepairStep("blank", start, end - start))
        else:
            plan.steps += _fills(start, end, timestamp)


def _fills(start: int, end: int, timestamp: int) -> Iterator[RepairStep]:
    """Yield records that cover [start, end); the bytes between two intact records of a log always suffice for one."""
    while start < end:
        length = min(end - start, LARGEST_FILL)
        if 0 < end - start - length < SMALLEST_RECORD:
            length -= SMALLEST_RECORD
        yield RepairStep("fill", start, length, timestamp=timestamp)
        start += length
