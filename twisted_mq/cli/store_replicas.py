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


@click.command(short_help="Show where the logs of two stores differ.")
@click.argument("left", type=click.Path(exists=True, file_okay=False))
@click.argument("right", type=click.Path(exists=True, file_okay=False))
def diff(left: str, right: str) -> None:
    """Compare the logs of the stores in LEFT and RIGHT, byte by byte, over the part that both have.

    Shows the first physical offset that differs, and the messages that only one side has. The exit code is 0 for equal
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


@click.command(short_help="Cut off the end of a log, from a record on.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--offset",
    type=click.IntRange(min=0),
    required=True,
    help="First physical offset to remove; it must be the start of a record.",
)
@click.option(
    "--commit-log",
    type=click.Path(exists=True, file_okay=False),
    help="Directory of the log, if it is not in the store.",
)
def truncate(directory: str, offset: int, commit_log: str | None) -> None:
    """Remove everything from a physical offset on in the log of DIRECTORY. The broker must be stopped.

    Use it for a slave that is ahead of its master: cut where `mq store diff` shows. The removed part is kept in the directory
    `damaged` of the store. The queues are corrected at the next start.

    \b
    Example:
      mq store truncate ~/slave/store --offset 1048576
    """
    require_numpy()
    from twisted_mq.storage.tools.log_cut import cut_log

    kept = cut_log(directory, offset, commit_log)
    print(f"the log now ends at {offset}" + (f"; the removed part is kept in {kept}" if kept else ""))
