"""Provides what the commands of `mq store` share: arguments, times, progress, and the check for numpy."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar

import click

from twisted_mq.extras import require

Command = TypeVar("Command", bound=Callable[..., object])

LONGEST_LIST = 100
"""The most problems that are printed; --json has all."""


def store_arguments(command: Command) -> Command:
    """Add the store's directory, and the log if it is elsewhere."""
    elsewhere = click.option(
        "--commit-log",
        type=click.Path(exists=True, file_okay=False),
        help="Directory of the log, if it is not in the store.",
    )
    directory = click.argument("directory", type=click.Path(exists=True, file_okay=False))
    return directory(elsewhere(command))


def file_size_option(command: Command) -> Command:
    """Add an option for logs whose files do not show their intended length."""
    option = click.option(
        "--file-size",
        type=click.IntRange(min=0),
        default=0,
        help="Size of a log file in bytes (mappedFileSizeCommitLog), if the files do not show it.",
    )
    return option(command)


def json_option(command: Command) -> Command:
    """Add an option for everything as one JSON object."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")(command)


def require_numpy() -> None:
    """Check that numpy is installed, before importing the tools that use it. Raises MissingExtra."""
    require("mq store", "broker")


class StoreTime(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A time in ms since 1970, or ISO 8601; without a zone in UTC."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        try:
            if text.isdecimal():
                return int(text)
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                f"{value!r} is not a time; use ms since 1970 or 2026-11-21T08:00:00, optionally with +08:00", param, ctx
            )
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


class OffsetRange(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A:B, from A up to before B; either may be left out."""

    name = "from:to"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        begin, colon, end = str(value).partition(":")
        try:
            if colon and all(part.isdecimal() or not part for part in (begin, end)):
                return int(begin or 0), int(end) if end else 1 << 62
        except ValueError:  # more digits than int() accepts
            pass
        self.fail(f"{value!r} is not a range; use 100:200, 100: or :200", param, ctx)


def time_text(timestamp_ms: int) -> str:
    """Return a store time for people, in UTC; empty without a time."""
    if timestamp_ms <= 0:
        return ""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def folder_name(command: str) -> str:
    """Return a name for the quarantine folder of a command that runs now."""
    return time.strftime(f"{command}-%Y%m%d-%H%M%S", time.gmtime())


def print_some(lines: Iterable[object], total: int) -> None:
    """Print the first lines, and how many more there are."""
    for number, line in enumerate(lines):
        if number == LONGEST_LIST:
            break
        print(line)
    if total > LONGEST_LIST:
        print(f"and {total - LONGEST_LIST} more; --json prints all")
    sys.stdout.flush()
