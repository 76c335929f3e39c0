"""Implements `mq store sizes`: what takes the space."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.cli.output import Row, json_line, print_table, progress
from twisted_mq.cli.store_options import json_option, require_numpy, store_arguments, time_text
from twisted_mq.protocol.text.json_value import Json

if TYPE_CHECKING:
    from twisted_mq.storage.tools.sizes import DropReport, FileSize, StoreSizes, TopicSize

TOPIC_COLUMNS = ("topic", "messages", "log bytes", "live bytes", "queue bytes", "files", "oldest (UTC)", "newest (UTC)")
FILE_COLUMNS = ("log file", "bytes", "oldest (UTC)", "newest (UTC)", "pinned by", "not yet read by")
_NAMES_SHOWN = 3


@click.command(short_help="Show the size of each topic, its oldest message, and the log files that it pins.")
@store_arguments
@click.option(
    "--drop", multiple=True, metavar="TOPIC", help="Show what deleting this topic would free; may be repeated."
)
@json_option
def sizes(directory: str, commit_log: str | None, drop: tuple[str, ...], as_json: bool) -> None:
    """Show what uses the space of the store in DIRECTORY. Nothing is changed, not even with --drop.

    A log file is deleted as a whole, the oldest first. A topic pins a file if its queues still point to a message
    there. "not yet read by" lists each topic@group whose offset is before a message there.

    \b
    Example:
      mq store sizes ~/store --drop Metrics
    """
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.sizes import measure

    with progress("measuring", LogFiles(directory, commit_log).size_bytes) as advance:
        found = measure(directory, commit_log, advance)
    dropped = found.what_if_dropped(drop) if drop else None
    if as_json:
        sys.stdout.write(json_line(_as_object(found, dropped)))
        return
    largest = sorted(found.topics.values(), key=lambda topic: (-topic.log_bytes, topic.topic))
    print_table(TOPIC_COLUMNS, map(topic_row, largest))
    print_table(FILE_COLUMNS, map(file_row, found.files))
    if dropped is not None:
        print_table(("without", "value"), drop_rows(dropped))


def topic_row(topic: TopicSize) -> Row:
    """Return a TopicSize under TOPIC_COLUMNS."""
    return (
        topic.topic,
        topic.messages,
        topic.log_bytes,
        topic.live_bytes,
        topic.queue_bytes,
        topic.files,
        time_text(topic.oldest),
        time_text(topic.newest),
    )


def file_row(file: FileSize) -> Row:
    """Return a FileSize under FILE_COLUMNS."""
    return (
        os.path.basename(file.path),
        file.record_bytes,
        time_text(file.oldest),
        time_text(file.newest),
        _some(file.pinned_by),
        _some(sorted(file.unread)),
    )


def _some(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return " ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def drop_rows(dropped: DropReport) -> list[tuple[str, object]]:
    """Return a DropReport as name and value."""
    return [
        ("topics", " ".join(dropped.topics)),
        ("messages", dropped.messages),
        ("their bytes in the log", dropped.log_bytes),
        ("bytes of queue files, free at once", dropped.queue_bytes),
        ("log files that no other topic pins", len(dropped.only_theirs)),
        ("log files that could be deleted, oldest first", len(dropped.deletable)),
        ("bytes free with these", dropped.deletable_bytes),
    ]


def _as_object(found: StoreSizes, dropped: DropReport | None) -> dict[str, Json]:
    files = [{**attrs.asdict(file), "unread": sorted(file.unread), "pinned_by": file.pinned_by} for file in found.files]
    return {
        "fileSize": found.file_size,
        "topics": [attrs.asdict(topic) for _, topic in sorted(found.topics.items())],
        "files": files,
        "drop": attrs.asdict(dropped) if dropped is not None else None,
    }
