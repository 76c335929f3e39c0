"""Repairs a store: makes the plan and carries it out.

The steps have an order that allows to start a killed repair again. The damaged bytes are copied into the quarantine
folder and listed in its manifest. Each log file is changed in a copy, which replaces it when it is on disk. Queues
are built again from the log. Consumer offsets past the end of their queue are set to it. No intact record is lost or
changed except in its place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import BinaryIO

import attrs

from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.protocol.layouts.record import SMALLEST_RECORD, encode_blank
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.text.json_value import Json
from twisted_mq.storage.columns.walk import LogFiles
from twisted_mq.storage.errors import StoreUnwritable
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.recovery.interruption_mark import Unfinished
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable
from twisted_mq.storage.tools.config_check import OFFSETS_FILE, excessive_offsets
from twisted_mq.storage.tools.exclusive import exclusively
from twisted_mq.storage.tools.findings import INDEX, LOG, OFFSETS, QUEUE
from twisted_mq.storage.tools.quarantine import Quarantine
from twisted_mq.storage.tools.rebuild import RebuildReport, replace_derived
from twisted_mq.storage.tools.repair_plan import FilePlan, LogPlan, RepairStep, plan_log
from twisted_mq.storage.tools.verify import VerifyReport, queue_ends, verify

FILL_TOPIC = b"RMQ_SYS_REPAIRED"
"""The topic of the records that cover damaged bytes; shortened if the space is too small."""
_NO_HOST = bytes(8)
_COPY_CHUNK = 1 << 20
_BESIDE = "repairing"
"""A directory among the log's files, which Apache's broker ignores."""
Advance = Callable[[int], None]


@attrs.define
class RepairPlan:
    """The defects of a store and the changes that would be, or were, made."""

    found: VerifyReport
    log: LogPlan
    rebuild_queues: bool
    rebuild_index: bool
    consumer_offsets: list[tuple[str, int, int, int]]
    """topic@group, queue id, offset, the queue's end."""
    kept_in: str = ""
    rebuilt: RebuildReport | None = None

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not (self.log.files or self.rebuild_queues or self.rebuild_index or self.consumer_offsets)


def plan_repair(
    root: str,
    commit_log: str | None = None,
    *,
    file_size: int = 0,
    index_sizes: IndexSizes | None = None,
    exclusive: bool = False,
    advance: Advance = lambda amount: None,
) -> RepairPlan:
    """Check everything and write nothing. The log is read twice. Raises NoStore."""
    files = LogFiles(root, commit_log, file_size)
    found = verify(
        root, commit_log, file_size=files.file_size, index_sizes=index_sizes, exclusive=exclusive, advance=advance
    )
    log = plan_log(files, advance) if _any(found, LOG) else LogPlan()
    queues = bool(log.files) or _any(found, QUEUE)
    index = (found.index_entries > 0 and bool(log.files)) or _any(found, INDEX)
    offsets = list(excessive_offsets(files.paths, found.queue_ends)) if _any(found, OFFSETS) else []
    return RepairPlan(found, log, queues, index, offsets)


def _any(found: VerifyReport, part: str) -> bool:
    return any(one.part == part for one in found.findings)


def repair(
    root: str,
    commit_log: str | None = None,
    *,
    name: str,
    file_size: int = 0,
    queue_file_size: int = 0,
    index_sizes: IndexSizes | None = None,
    advance: Advance = lambda amount: None,
) -> RepairPlan:
    """Make the plan and carry it out; `name` is that of the quarantine folder.

    Raises NoStore, StoreInUse, StoreUnwritable, OSError.
    """
    files = LogFiles(root, commit_log, file_size)
    with exclusively(files.paths):
        plan = plan_repair(
            root, commit_log, file_size=files.file_size, index_sizes=index_sizes, exclusive=True, advance=advance
        )
        if plan.empty:
            return plan
        quarantine = Quarantine(files.paths, name, "mq store repair")
        quarantine.open()
        plan.kept_in = quarantine.directory
        copies = _keep(plan.log, quarantine)
        quarantine.write_manifest(plan=describe(plan))
        unfinished = Unfinished(files.paths)
        if plan.log.files:
            unfinished.begin(index=True)
            _change_log(plan.log, files, copies)
        if plan.rebuild_queues or plan.rebuild_index:
            plan.rebuilt = replace_derived(
                LogFiles(root, commit_log, files.file_size), quarantine, unfinished, queue_file_size, index_sizes
            )
        unfinished.take_back()
        _cut_offsets(files, plan, quarantine)
        quarantine.write_manifest(plan=describe(plan), done=True)
    return plan


def describe(plan: RepairPlan) -> dict[str, Json]:
    """Return the plan as JSON for the manifest and for `mq store repair --json`."""
    return {
        "intactRecords": plan.log.intact_records,
        "movedRecords": plan.log.moved_records,
        "damagedBytes": plan.log.damaged_bytes,
        "files": [attrs.asdict(file) for file in plan.log.files],
        "rebuildQueues": plan.rebuild_queues,
        "rebuildIndex": plan.rebuild_index,
        "consumerOffsets": [
            dict(zip(("key", "queueId", "offset", "queueEnd"), one, strict=True)) for one in plan.consumer_offsets
        ],
        "findings": [finding.as_json() for finding in plan.found.findings],
    }


def _keep(plan: LogPlan, quarantine: Quarantine) -> dict[int, tuple[int, str]]:
    """Copy all damaged parts; return physical offset to (length, path of the copy)."""
    copies = {}
    for file in plan.files:
        for offset, length, reason in file.damaged:
            position = offset - file.first_offset
            path = quarantine.keep_bytes(file.path, position, length, offset=offset, reason=reason)
            copies[offset] = (length, path)
    return copies


def _change_log(plan: LogPlan, files: LogFiles, copies: Mapping[int, tuple[int, str]]) -> None:
    """Change the log's files. Raises StoreUnwritable, for example without room for a copy of a file.

    Then the file concerned is unchanged.
    """
    beside = os.path.join(files.directory, _BESIDE)
    try:
        shutil.rmtree(beside, ignore_errors=True)
        os.mkdir(beside)
        for file in plan.files:
            changed = os.path.join(beside, os.path.basename(file.path))
            with open(changed, "wb") as copy:
                _copy(file.path, copy)
                _change_file(copy.fileno(), file, copies)
                system_calls.fdatasync(copy.fileno())
            os.replace(changed, file.path)
            sync_directory(files.directory)
        os.rmdir(beside)
    except OSError as error:
        raise StoreUnwritable(beside, error) from error


def _copy(path: str, copy: BinaryIO) -> None:
    """Write a file's bytes, if it exists, with holes for runs of zeros."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        while chunk := file.read(_COPY_CHUNK):
            copy.seek(len(chunk), os.SEEK_CUR) if chunk.count(0) == len(chunk) else copy.write(chunk)
    copy.truncate()
    copy.flush()


def _change_file(descriptor: int, file: FilePlan, copies: Mapping[int, tuple[int, str]]) -> None:
    for offset, length, _ in file.damaged:
        _zero(descriptor, offset - file.first_offset, length)
    os.ftruncate(descriptor, file.size)
    for step in file.steps:
        position = step.offset - file.first_offset
        if step.kind == "move":
            os.pwrite(descriptor, _copied(copies, step), position)
        elif step.kind == "fill":
            _fill(descriptor, step, position)
        elif step.kind == "blank":
            os.pwrite(descriptor, encode_blank(step.length), position)


def _zero(descriptor: int, position: int, length: int) -> None:
    chunk = bytes(1 << 20)
    while length > 0:
        written = os.pwrite(descriptor, chunk[:length], position)
        position, length = position + written, length - written


def _copied(copies: Mapping[int, tuple[int, str]], step: RepairStep) -> bytes:
    """Return the bytes of a displaced record, from the quarantine."""
    for offset, (length, path) in copies.items():
        if offset <= step.source and step.source + step.length <= offset + length:
            with open(path, "rb") as file:
                file.seek(step.source - offset)
                return file.read(step.length)
    raise ValueError(f"the record at {step.source} was not kept")


def _fill(descriptor: int, step: RepairStep, position: int) -> None:
    """Write a rolled back message of zeros: recoveries walk over it, and no queue and no index leads to it."""
    topic = FILL_TOPIC[: step.length - SMALLEST_RECORD]
    body = bytes(step.length - SMALLEST_RECORD - len(topic))
    record = encode_record(
        topic,
        body,
        b"",
        queue_id=0,
        queue_offset=0,
        physical_offset=step.offset,
        born_timestamp=step.timestamp,
        born_host=_NO_HOST,
        store_timestamp=step.timestamp,
        store_host=_NO_HOST,
        sys_flag=MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
    )
    os.pwrite(descriptor, record, position)


def _cut_offsets(files: LogFiles, plan: RepairPlan, quarantine: Quarantine) -> None:
    """Set offsets past the end of their queue to the end, as a broker tells such a consumer to."""
    ends = queue_ends(files)
    excessive = list(excessive_offsets(files.paths, ends))
    if not excessive:
        return
    path = os.path.join(files.paths.config, OFFSETS_FILE)
    quarantine.keep_bytes(path, 0, os.path.getsize(path), offset=0, reason="offsets past the end of their queue")
    table = ConsumerOffsetTable(path)
    table.load()
    for key, queue_id, _, end in excessive:
        table.offsets[key][queue_id] = end
    table.save()
    plan.consumer_offsets = excessive
