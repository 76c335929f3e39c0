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
        raise click.BadParameter(f"{size} is not a multiple of {ENTRY_BYTES}, the size of an entry")
    return size


@click.command(short_help="Rebuild consume queues and index from the log.")
@store_arguments
@click.option("--apply", is_flag=True, help="Apply the change; without --apply nothing is changed.")
@click.option(
    "--queue-file-size",
    type=click.IntRange(min=0),
    default=0,
    callback=_whole_entries,
    help="Size of a queue file in bytes (mappedFileSizeConsumeQueue). By default that of the old files, or 6000000.",
)
@json_option
def rebuild(directory: str, commit_log: str | None, apply: bool, queue_file_size: int, as_json: bool) -> None:
    """Rebuild the consume queues and the key index of the store in DIRECTORY from its log.

    The old files are kept in DIRECTORY/damaged. Deleted topics stay deleted. The broker must be stopped.

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
    print(f"done; the old files are in {report.kept_in}" if apply else "nothing was changed; add --apply to do it")


def rows(report: RebuildReport) -> list[tuple[str, object]]:
    """Return a RebuildReport as name and value."""
    return [
        ("queues", report.queues),
        ("queue entries", report.entries),
        ("of these over lost messages", report.bridges),
        ("index entries", report.index_entries),
        ("messages of deleted topics", report.records_of_deleted_topics),
        ("messages with impossible queue offsets", len(report.left_out)),
        ("damaged ranges of the log", report.gaps),
    ]


def _left_out(place: tuple[str, int, int, int]) -> str:
    topic, queue_id, queue_offset, physical_offset = place
    return f"{topic}/{queue_id} at {queue_offset}: the record at {physical_offset} is not in the order of its queue"
