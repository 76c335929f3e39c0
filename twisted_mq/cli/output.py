"""Tables and progress: for people on a terminal, plain and stable lines everywhere else."""

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
"""Columns whose values people copy: they are neither cut nor broken, whatever the width of the terminal."""

WIDEST = 1000
"""Columns of a table at most; where a terminal has fewer than a table needs, it breaks the lines itself."""

_PLAIN = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def print_table(columns: Sequence[str], rows: Iterable[Row], stream: TextIO | None = None) -> None:
    """A boxed table on a terminal; otherwise a line a row, columns parted by tabs, the first line names them.

    Tabs and line ends inside a value are written as \\t and \\n, so that a line stays a row.
    """
    out = stream or sys.stdout
    if out.isatty():
        _print_boxed(columns, rows, out)
        return
    out.write("\t".join(columns) + "\n")
    for row in rows:
        out.write(plain_row(row) + "\n")


def plain_row(row: Row) -> str:
    """The values parted by tabs; None is empty."""
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
    """The table of a terminal."""
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
    """A bar while long work runs, on a terminal only and with the extra `cli`; yields the function that moves it on."""
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
    """One JSON object as one line of text, keys in the order they have."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
