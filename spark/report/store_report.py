"""The store report: `python -m twisted_mq.spark.report STORE_DIR --out DIR`.

Prints messages and bytes by topic and queue, gaps, duplicates and latency as tables, and writes DIR/report.html with the same and
more, and its charts to DIR/report.png.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.report.picture_parts import picture_bytes
from twisted_mq.spark.report.report_data import StoreReport, TopicFigures, collect_report
from twisted_mq.spark.report.report_page import page
from twisted_mq.spark.report.report_picture import draw_report
from twisted_mq.spark.report.report_words import bytes_text, count_or_dash, count_text, duration_text, offsets_text

QUEUES_PRINTED = 60
_PLAIN_WIDTH = 200
"""Characters per line if the output is not a terminal."""

_FIELDS = ("topic", "queue", "messages", "bytes", "offsets", "missing", "duplicates", "bad crc", "p50", "p99", "max")
_TEXT_FIELDS = 1


def print_report(report: StoreReport, console: Console) -> None:
    """Print the tables: one line per topic, followed by its queues if it has several."""
    table = Table(title="Messages of the store", title_justify="left", header_style="bold")
    for position, field in enumerate(_FIELDS):
        table.add_column(field, justify="left" if position < _TEXT_FIELDS else "right", overflow="fold")
    left = QUEUES_PRINTED
    for topic in report.topics:
        table.add_row(*_topic_line(topic), style="dim" if topic.kind else "bold")
        for line in _queue_lines(topic)[:left]:
            table.add_row(*line, style="dim" if topic.kind else None)
        left = max(left - len(topic.queues), 0)
    console.print(table)
    if len(report.queues) > QUEUES_PRINTED:
        console.print(f"{QUEUES_PRINTED} of {len(report.queues)} queues; the page has them all")
    _print_checks(report, console)


def _topic_line(topic: TopicFigures) -> Sequence[str]:
    single = topic.queues[0] if len(topic.queues) == 1 else None
    return (
        escape(topic.topic),
        str(single.queue_id) if single else "all",
        count_text(topic.messages),
        bytes_text(topic.size_bytes),
        offsets_text(single.min_offset, single.max_offset) if single else "",
        *map(count_or_dash, (topic.missing, topic.extra, topic.bad_crc)),
        *map(duration_text, (topic.p50_ms, topic.p99_ms, topic.max_ms)),
    )


def _queue_lines(topic: TopicFigures) -> list[Sequence[str]]:
    if len(topic.queues) == 1:
        return []
    return [
        (
            "",
            str(queue.queue_id),
            count_text(queue.messages),
            bytes_text(queue.size_bytes),
            offsets_text(queue.min_offset, queue.max_offset),
            count_or_dash(queue.missing),
            "",
            count_or_dash(queue.bad_crc),
        )
        for queue in topic.queues
    ]


def _print_checks(report: StoreReport, console: Console) -> None:
    console.print(
        f"{count_text(report.total('messages'))} messages, {bytes_text(report.total('size_bytes'))} in "
        f"{report.files} file(s); gaps {count_text(report.total('gaps'))}, "
        f"duplicates by unique key {count_text(report.total('extra'))}, "
        f"wrong body CRC {count_text(report.total('bad_crc'))}, damaged stretches {len(report.damage)}",
        highlight=False,
    )
    for damage in report.damage:
        console.print(
            f"damaged: {damage.length} bytes at physical offset {damage.physical_offset} "
            f"of file {damage.file}: {escape(damage.reason)}",
            style="red",
            highlight=False,
        )


def write_report(report: StoreReport, directory: Path) -> tuple[Path, Path]:
    """Write page and charts to the directory, which is created if missing; return both paths."""
    directory.mkdir(parents=True, exist_ok=True)
    figure = draw_report(report)
    picture = directory / "report.png"
    picture.write_bytes(picture_bytes(figure, "png"))
    svg = picture_bytes(figure, "svg").decode()
    target = directory / "report.html"
    target.write_text(page(report, svg), encoding="utf-8")
    return target, picture


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)


@click.command()
@click.argument("store")
@click.option("--out", default="out", show_default=True, help="Write report.html and report.png to this directory.")
@click.option("--cores", type=int, help="Number of tasks that run in parallel; by default all cores.")
def main(store: str, out: str, cores: int | None) -> None:
    """Read the commit log in STORE with Spark and report on it.

    Example: python -m twisted_mq.spark.report ~/store --out /tmp/report
    """
    from twisted_mq.spark.session import local_session

    try:
        session = local_session("rocketmq store report", cores or "*")
        report = collect_report(session, store)
        target, picture = write_report(report, Path(out))
    except (StoreReadError, OSError) as error:
        raise click.ClickException(str(error)) from error
    print_report(report, _console())
    click.echo(f"report: {target}")
    click.echo(f"picture: {picture}")
    session.stop()
