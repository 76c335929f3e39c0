"""Implements `mq store dump`: the messages of a log, all or chosen ones."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from twisted_mq.admin.message_value import describe_message
from twisted_mq.cli.errors import report
from twisted_mq.cli.output import Row, json_line, plain_row, print_table, progress
from twisted_mq.cli.store_options import OffsetRange, StoreTime, require_numpy, store_arguments

if TYPE_CHECKING:
    from twisted_mq.protocol.messages.message import MessageExt
    from twisted_mq.storage.tools.findings import StoreFinding

COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "storeSize", "tags", "keys", "uniqKey", "bodyLength")

LONGEST_TABLE = 200
"""The messages that a terminal shows; piped output and --json have all."""
_EVERYTHING = (0, 1 << 62)


@click.command(short_help="Print all or selected messages of the commit log.")
@store_arguments
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per message.")
@click.option("--topic", "topics", multiple=True, help="Select only this topic; may be repeated.")
@click.option("--queue", "queue_ids", multiple=True, type=int, help="Select only this queue id; may be repeated.")
@click.option("--key", "keys", multiple=True, help="Select only this key, unique key or message id; may be repeated.")
@click.option(
    "--since",
    type=StoreTime(),
    default=_EVERYTHING[0],
    help="Select messages stored at or after this time: ms, or ISO 8601 (UTC).",
)
@click.option("--until", type=StoreTime(), default=_EVERYTHING[1], help="Stored before.")
@click.option("--offsets", type=OffsetRange(), default=_EVERYTHING, help="Select physical offsets, FROM:TO.")
@click.option("--queue-offsets", type=OffsetRange(), default=_EVERYTHING, help="Select queue offsets, FROM:TO.")
def dump(
    directory: str,
    commit_log: str | None,
    as_json: bool,
    topics: tuple[str, ...],
    queue_ids: tuple[int, ...],
    keys: tuple[str, ...],
    since: int,
    until: int,
    offsets: tuple[int, int],
    queue_offsets: tuple[int, int],
) -> None:
    """Print the messages in DIRECTORY (storePathRootDir) in the order of the log.

    A message must match all conditions. If the log is damaged, the offset and the reason go to standard error,
    reading continues at the next intact record, and the exit code is 1.

    \b
    Example:
      mq store dump ~/store --json --topic Orders --since 2026-11-21T08:00:00
    """
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.filters import RecordFilter, SelectedMessages

    files = LogFiles(directory, commit_log)
    wanted = RecordFilter(topics, queue_ids, keys, since, until, *offsets, *queue_offsets)
    # a bar and lines on the same terminal would destroy each other
    with progress("reading", files.size_bytes, hidden=sys.stdout.isatty()) as advance:
        messages = SelectedMessages(files, wanted, advance)
        if as_json:
            for message in messages:
                sys.stdout.write(json_line(describe_message(message)))
        else:
            _print_messages(iter(messages))
    _report_damage(messages.problems)


def _print_messages(messages: Iterator[MessageExt]) -> None:
    """Print all rows if output is piped; on a terminal, the first ones and the total."""
    if not sys.stdout.isatty():
        print("\t".join(COLUMNS))
        for message in messages:
            print(plain_row(message_row(message)))
        return
    print_table(COLUMNS, map(message_row, itertools.islice(messages, LONGEST_TABLE)))
    more = sum(1 for _ in messages)
    if more:
        print(f"and {more} more; --json prints all")


def _report_damage(problems: Sequence[StoreFinding]) -> None:
    for problem in problems:
        report("mq store dump", f"{problem.path} at offset {problem.offset}: {problem.problem}")
    if problems:
        raise SystemExit(1)


def message_row(message: MessageExt) -> Row:
    """Return a MessageExt under COLUMNS."""
    return (
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.store_size,
        message.tags,
        " ".join(message.keys),
        message.unique_key,
        len(message.body),
    )
