"""Prints tables and progress: for people on a terminal, plain and stable lines everywhere else."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeAlias

from twisted_mq.protocol.text.json_value import Json

if TYPE_CHECKING:
    from rich.table import Table

Row: TypeAlias = Sequence[object]
Advance = Callable[[int], None]

COPIED = frozenset({"msgId"})
"""Columns whose values people copy: they are neither cut nor broken, at any width of the terminal."""

WIDEST = 1000
"""The most columns of a table; a narrower terminal breaks the lines itself."""

_PLAIN = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def print_table(columns: Sequence[str], rows: Iterable[Row], stream: TextIO | None = None) -> None:
    """Print a boxed table on a terminal; otherwise a line for each row, columns separated by tabs, after a line of column names.

    Tabs and line ends inside a value are written as \\t and \\n, so that a row stays one line.
    """
    out = stream or sys.stdout
    if out.isatty():
        _print_boxed(columns, rows, out)
        return
    out.write("\t".join(columns) + "\n")
    for row in rows:
        out.write(plain_row(row) + "\n")


def plain_row(row: Row) -> str:
    """Return the values separated by tabs; None is empty."""
    return "\t".join("" if value is None else str(value).translate(_PLAIN) for value in row)


def _print_boxed(columns: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    from rich.console import Console
    from rich.measure import Measurement

    table = boxed(columns, rows)
    console = Console(file=out)
    wide = console.options.update(width=WIDEST)
    console.width = max(console.width, Measurement.get(console, wide, table).minimum)
    console.print(table)


def boxed(columns: Sequence[str], rows: Iterable[Row]) -> Table:
    """Return the table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    texts = [["" if value is None else str(value) for value in row] for row in rows]
    table = Table()
    for number, column in enumerate(columns):
        longest = max((len(row[number]) for row in texts), default=0)
        table.add_column(column, overflow="fold", min_width=longest if column in COPIED else None)
    for row in texts:
        table.add_row(*map(Text, row))
    return table


@contextmanager
def progress(label: str, total: int | None, stream: TextIO | None = None, *, hidden: bool = False) -> Iterator[Advance]:
    """Show a bar while long work runs, on a terminal only and with the extra `cli`; yield the function that advances it."""
    out = stream or sys.stderr
    if hidden or not out.isatty() or importlib.util.find_spec("rich") is None:
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=out), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)


def json_line(value: Json) -> str:
    """Return one JSON object as one line of text, with its keys in order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
