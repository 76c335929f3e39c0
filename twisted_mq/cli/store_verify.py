"""Implements `mq store verify`: everything in a store against everything else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.output import json_line, print_table, progress
from twisted_mq.cli.store_options import file_size_option, json_option, print_some, require_numpy, store_arguments
from twisted_mq.protocol.text.json_value import Json

if TYPE_CHECKING:
    from twisted_mq.storage.tools.verify import VerifyReport


@click.command(short_help="Check every record, the queues, the index and consumer offsets.")
@store_arguments
@file_size_option
@json_option
def verify(directory: str, commit_log: str | None, file_size: int, as_json: bool) -> None:
    """Show everything that is wrong with the store in DIRECTORY. The exit code is 1 if anything is wrong.

    Checks each record's magic, size, CRC and offset; queue entries and index entries against records, and the reverse;
    consumer offsets against the ends of the queues; the JSON tables. Nothing is changed. The broker may be
    running: records that it has not dispatched yet are counted, and are not an error.

    \b
    Example:
      mq store verify ~/store
    """
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.verify import verify

    with progress("verifying", LogFiles(directory, commit_log).size_bytes) as advance:
        report = verify(directory, commit_log, file_size=file_size, advance=advance)
    if as_json:
        sys.stdout.write(json_line(as_object(report)))
    else:
        print_table(("what", "value"), rows(report))
        print_some(report.findings, len(report.findings))
        print(conclusion(report))
    if not report.sound:
        raise SystemExit(1)


def conclusion(report: VerifyReport) -> str:
    """Return what to do, in one line."""
    if report.sound:
        return "sound: every record has its queue entry, every entry its record"
    count = len(report.findings)
    plural = "problem" if count == 1 else "problems"
    return f"{count} {plural}: `mq store repair {report.directory}` shows how to repair it"


def rows(report: VerifyReport) -> Sequence[tuple[str, object]]:
    """Return name and value of each number."""
    if report.in_use:
        state = "is running"
    else:
        state = "closed it" if report.closed else "was killed (abort file)"
    return (
        ("store", report.directory),
        ("last broker", state),
        ("first byte of the log", report.min_offset),
        ("end of the last message", report.max_offset),
        ("messages", report.messages),
        ("bytes of messages", report.message_bytes),
        ("topics with queues", report.topics),
        ("queues", report.queues),
        ("queue entries", report.entries),
        ("index entries", report.index_entries),
        ("messages of deleted topics", report.deleted_records),
        ("messages not dispatched yet", report.undispatched),
    )


def as_object(report: VerifyReport) -> dict[str, Json]:
    """Return the report as one JSON object."""
    return {
        "store": report.directory,
        "sound": report.sound,
        "inUse": report.in_use,
        "closed": report.closed,
        "minOffset": report.min_offset,
        "maxOffset": report.max_offset,
        "messages": report.messages,
        "messageBytes": report.message_bytes,
        "topics": report.topics,
        "queues": report.queues,
        "queueEntries": report.entries,
        "indexEntries": report.index_entries,
        "deletedRecords": report.deleted_records,
        "undispatched": report.undispatched,
        "findings": [finding.as_json() for finding in report.findings],
    }
