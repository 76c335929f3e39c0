"""Implements `mq store rebuild`: rebuilds queues and index from the log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.cli.output import json_line, print_table, progress
from twisted_mq.cli.store_options import folder_name, json_option, print_some, require_numpy, store_arguments

if TYPE_CHECKING:
    from twisted_mq.storage.tools.rebuild import RebuildReport


def _whole_entries(context: click.Context, parameter: click.Parameter, size: int) -> int:
    from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES

    if size % ENTRY_BYTES:
        raise click.BadParameter(f"{size} is no multiple of {ENTRY_BYTES}, the bytes of an entry")
    return size


@click.command(short_help="Make consume queues and index anew from the log.")
@store_arguments
@click.option("--apply", is_flag=True, help="Do it; without this nothing is changed.")
@click.option(
    "--queue-file-size",
    type=click.IntRange(min=0),
    default=0,
    callback=_whole_entries,
    help="Bytes of a queue file (mappedFileSizeConsumeQueue). Without it, those of the old files; 6000000 if none is left.",
)
@json_option
def rebuild(directory: str, commit_log: str | None, apply: bool, queue_file_size: int, as_json: bool) -> None:
    """Make the consume queues and the key index of the store in DIRECTORY anew from its log.

    The old ones are kept in DIRECTORY/damaged. Topics that were deleted stay deleted. No broker may be running.

    \b
    Example:
      mq store rebuild ~/store --apply
    """
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.rebuild import rebuild

    with progress("rebuilding", LogFiles(directory, commit_log).size_bytes) as advance:
        report = rebuild(
            directory,
            commit_log,
            apply=apply,
            name=folder_name("rebuild"),
            queue_file_size=queue_file_size,
            advance=advance,
        )
    if as_json:
        sys.stdout.write(json_line({**attrs.asdict(report), "applied": apply}))
        return
    print_table(("what", "value"), rows(report))
    print_some(map(_left_out, report.left_out), len(report.left_out))
    print(f"done; the old files are in {report.kept_in}" if apply else "nothing was changed; --apply does it")


def rows(report: RebuildReport) -> list[tuple[str, object]]:
    """Return a RebuildReport as name and value."""
    return [
        ("queues", report.queues),
        ("queue entries", report.entries),
        ("of these over lost messages", report.bridges),
        ("index entries", report.index_entries),
        ("messages of deleted topics", report.records_of_deleted_topics),
        ("messages with impossible queue offsets", len(report.left_out)),
        ("damaged stretches of the log", report.gaps),
    ]


def _left_out(place: tuple[str, int, int, int]) -> str:
    topic, queue_id, queue_offset, physical_offset = place
    return f"{topic}/{queue_id} at {queue_offset}: the record at {physical_offset} falls out of its queue's order"
