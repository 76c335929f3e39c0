"""Provides what all jobs share: their session and its progress, output, the page, errors in a line, the exit code."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import json_line, print_table
from twisted_mq.cli.store_options import json_option
from twisted_mq.protocol.text.json_value import Json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twisted_mq.spark.commands.stores import Stores
    from twisted_mq.spark.findings.findings import Findings, Kind, Table

SUBMITTED, REMOTE = "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"
"""Environment variables of programs that spark-submit runs, and of those whose Spark is a Connect server: there, master
and settings are not ours to set.
"""
_PROGRESS = "spark.ui.showConsoleProgress"
_FAULT = "twisted_mq."
_ROWS = 50
_NOT_THERE = "No module named 'twisted_mq"
"""Part of the error of a worker that has neither the project nor its pack."""


def job(command: Callable[..., Findings]) -> Callable[..., None]:
    """Make a command from a function from stores and options to findings: it has STORE... and the common options."""

    @click.argument("paths", metavar="STORE...", nargs=-1, required=True)
    @click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=_ROWS,
        show_default=True,
        help="Maximum number of rows in a table.",
    )
    @click.option("--html", type=click.Path(dir_okay=False), help="Also write an HTML page with charts to this file.")
    @click.option(
        "--cores", type=click.IntRange(min=1), help="Number of tasks that run in parallel; by default all cores."
    )
    @json_option
    @functools.wraps(command)
    def run(paths: tuple[str, ...], html: str | None, cores: int | None, as_json: bool, **options: Any) -> None:
        with opened(paths, cores) as stores:
            findings = command(stores=stores, **options)
        if html is not None:
            write_page(findings, ", ".join(paths), html)
        show(findings, as_json)
        if not findings.sound:
            raise SystemExit(1)

    return run


@contextmanager
def opened(paths: tuple[str, ...], cores: int | None) -> Iterator[Stores]:
    """Yield the stores, in a session that ends with the job if it began with it. Raises CliError for any problem."""
    from pyspark.errors import PySparkException

    from twisted_mq.spark.commands.stores import Stores
    from twisted_mq.spark.errors import StoreReadError

    try:
        with session(cores) as one:
            yield Stores.opened(one, paths)
    except StoreReadError as error:
        raise CliError(str(error)) from error
    except PySparkException as error:
        raise CliError(reason_of(str(error))) from error


def reason_of(text: str) -> str:
    """Return the cause from a failed task's traceback: our own error if it has one, or else the first line."""
    if _NOT_THERE in text:
        return "Spark's workers do not have this project: run spark-submit with --py-files and the archive of `mq spark pack`"
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["Spark does not report a reason"]
    ours = [line.partition(": ")[2] for line in lines if line.startswith(_FAULT)]
    return ours[-1] if ours else lines[0]


@contextmanager
def session(cores: int | None) -> Iterator[SparkSession]:
    """Yield the existing session, that of spark-submit or a Connect server, or a local one, whose progress a terminal shows."""
    from pyspark.sql import SparkSession

    from twisted_mq.spark.pack import bring_pack
    from twisted_mq.spark.session import SETTINGS, local_session

    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    if not os.environ.keys().isdisjoint((SUBMITTED, REMOTE)):
        made = SparkSession.builder.appName("mq spark").getOrCreate()
        made.conf.set("spark.sql.session.timeZone", SETTINGS["spark.sql.session.timeZone"])
        if REMOTE in os.environ:
            bring_pack(made)
    else:
        made = local_session("mq spark", cores or "*", {_PROGRESS: "true"} if sys.stderr.isatty() else {})
    try:
        yield made
    finally:
        made.stop()


def write_page(findings: Findings, about: str, path: str) -> None:
    """Write the page with tables and pictures. Bytes of a path that are not UTF-8 are escaped."""
    from twisted_mq.spark.findings.page import page

    text = page(findings, about)
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def show(findings: Findings, as_json: bool) -> None:
    """Print on standard output: words on a terminal, plain numbers elsewhere."""
    if as_json:
        sys.stdout.write(json_line(as_object(findings)))
        return
    if findings.figures:
        print_table(("what", "value"), [(one.name, _text(one.kind, one.value)) for one in findings.figures])
    for table in findings.tables:
        _print(table)
    sys.stdout.flush()


def _print(table: Table) -> None:
    shown = "" if table.total == len(table.rows) else f", the first {len(table.rows)}"
    print(f"{table.name}: {table.total}{shown}")
    if table.rows:
        kinds = table.kinds.values()
        print_table(
            list(table.kinds),
            [[_text(kind, value) for kind, value in zip(kinds, row, strict=True)] for row in table.rows],
        )


def _text(kind: Kind, value: object) -> object:
    """Return a value; times are for people everywhere."""
    from twisted_mq.spark.findings.findings import Kind, words

    return words(kind, value) if sys.stdout.isatty() or kind is Kind.TIME else value


def as_object(findings: Findings) -> dict[str, Json]:
    """Return everything, times in ms since 1970."""
    tables: dict[str, Json] = {
        table.name: {"total": table.total, "rows": [dict(zip(table.kinds, row, strict=True)) for row in table.rows]}
        for table in findings.tables
    }
    figures: dict[str, Json] = {one.name: one.value for one in findings.figures}
    return {"job": findings.title, "sound": findings.sound, "figures": figures, "tables": tables}
