"""Implements `mq store diff` and `mq store truncate`, for a slave's log that differs from its master's."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.output import Row, print_table
from twisted_mq.cli.store_options import require_numpy

if TYPE_CHECKING:
    from twisted_mq.protocol.messages.message import MessageExt

COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "tags", "keys", "uniqKey")
MOST_ROWS = 100
"""The most messages that are listed of each side; their number is always shown."""


@click.command(short_help="Say where two stores' logs part.")
@click.argument("left", type=click.Path(exists=True, file_okay=False))
@click.argument("right", type=click.Path(exists=True, file_okay=False))
def diff(left: str, right: str) -> None:
    """Compare the logs of the stores in LEFT and RIGHT, byte by byte, over the part that both have.

    Names the first physical offset where they differ and the messages that only one side has. Exit code 0 for equal
    logs, 1 for different ones. Brokers may be running.

    \b
    Example:
      mq store diff ~/master/store ~/slave/store
    """
    require_numpy()
    from twisted_mq.storage.tools.compare import compare_stores

    found = compare_stores(left, right)
    if not found:
        print(f"equal from {max(found.left.min_offset, found.right.min_offset)} to {found.left.max_offset}")
        return
    print(f"first difference at physical offset {found.first_offset}, in the record at {found.record_offset}")
    for side in (found.left, found.right):
        print(f"{side.root}: log from {side.min_offset} to {side.max_offset}, {len(side.only_here)} messages only here")
        if side.only_here:
            print_table(COLUMNS, map(message_row, itertools.islice(side.only_here, MOST_ROWS)))
    raise SystemExit(1)


def message_row(message: MessageExt) -> Row:
    """Return a MessageExt under COLUMNS."""
    return (
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.tags,
        " ".join(message.keys),
        message.unique_key,
    )


@click.command(short_help="Cut a log at a record.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--offset", type=click.IntRange(min=0), required=True, help="The first byte that goes, a record's first.")
@click.option("--commit-log", type=click.Path(exists=True, file_okay=False), help="The log, where it lies elsewhere.")
def truncate(directory: str, offset: int, commit_log: str | None) -> None:
    """Drop everything from a physical offset on in the log of DIRECTORY, whose broker must be stopped.

    For a slave that is ahead of its master: cut where `mq store diff` says. What is cut off is kept in the directory
    `damaged` of the store; the queues follow at the next start.

    \b
    Example:
      mq store truncate ~/slave/store --offset 1048576
    """
    require_numpy()
    from twisted_mq.storage.tools.log_cut import cut_log

    kept = cut_log(directory, offset, commit_log)
    print(f"the log ends at {offset} now" + (f"; what followed is kept in {kept}" if kept else ""))
