"""Implements `mq backup` and `mq restore`: a proved copy of a store, made while its broker runs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.output import json_line, print_table, progress
from twisted_mq.cli.store_options import json_option, require_numpy, store_arguments, time_text
from twisted_mq.protocol.text.json_value import Json

if TYPE_CHECKING:
    from twisted_mq.storage.tools.backup import BackupReport


@click.command(short_help="Copy a store, also while its broker runs, and verify the copy.")
@store_arguments
@click.argument("target", type=click.Path())
@click.option("--copy", "copies", is_flag=True, help="Copy full log files instead of creating hard links.")
@json_option
def backup(directory: str, commit_log: str | None, target: str, copies: bool, as_json: bool) -> None:
    """Copy the store in DIRECTORY into TARGET, an empty or new directory. The broker may be running.

    The copy has everything that was acknowledged before the start: the log ends after its last intact record, queues and
    index are rebuilt from it, and the copy is verified. Full log files are hard links if TARGET is on the same file system:
    they use no space until the broker deletes its own. `mq store repair --apply` on either side changes both.

    \b
    Example:
      mq backup ~/store /backups/store-monday
    """
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.backup import back_up

    with progress("copying", LogFiles(directory, commit_log).size_bytes) as advance:
        now_ms = int(time.time() * 1000)
        report = back_up(directory, target, commit_log, now_ms, links=not copies, advance=advance)
    print_report(report, as_json)


@click.command(short_help="Restore a store from a backup.")
@click.argument("backup", type=click.Path(exists=True, file_okay=False))
@click.argument("directory", type=click.Path())
@json_option
def restore(backup: str, directory: str, as_json: bool) -> None:
    """Restore the backup in BACKUP, made by `mq backup`, to DIRECTORY, an empty or new directory. A broker can then use it.

    Every file is compared with its recorded checksum, and the store is verified. The backup is not changed.

    \b
    Example:
      mq restore /backups/store-monday ~/store
    """
    require_numpy()
    from twisted_mq.storage.tools.backup import restore, size_of

    with progress("restoring", size_of(backup)) as advance:
        report = restore(backup, directory, advance=advance)
    print_report(report, as_json)


def print_report(report: BackupReport, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_line(as_object(report)))
    else:
        print_table(("what", "value"), as_object(report).items())


def as_object(report: BackupReport) -> dict[str, Json]:
    """Return the report as one JSON object."""
    return {
        "store": report.directory,
        "of": report.manifest.source,
        "made": time_text(report.manifest.made_ms),
        "minOffset": report.manifest.min_offset,
        "endOffset": report.manifest.end_offset,
        "messages": report.found.messages,
        "queues": report.found.queues,
        "linkedFiles": report.linked,
        "copiedBytes": report.copied_bytes,
        "sound": report.found.sound,
    }
