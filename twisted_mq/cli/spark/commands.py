"""Defines the jobs as commands with their options. twisted_mq.spark.commands does the work."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.output import print_table, progress
from twisted_mq.cli.server_options import reaches_servers
from twisted_mq.cli.spark.following import followed, of_turn
from twisted_mq.cli.spark.frame import job
from twisted_mq.cli.store_options import StoreTime

if TYPE_CHECKING:
    from twisted_mq.cli.servers import Servers
    from twisted_mq.spark.commands.stores import Stores
    from twisted_mq.spark.findings.findings import Findings

_STEPS = ("minute", "hour", "day")
_FORMATS = ("parquet", "iceberg", "delta")
_PARTS = ("topic", "hour", "host")
_HOURS = "24,48,72,168"
every = click.option(
    "--every", type=click.Choice(_STEPS), default="hour", show_default=True, help="Length of a time step."
)


@click.group(short_help="Run Spark jobs on store directories: export, replay, audit, search, metrics.")
def spark() -> None:
    """Run Spark jobs on store directories of this project or of Apache's broker, also while a broker runs.

    STORE is a directory (storePathRootDir), a pattern, or a URI of S3 or HDFS. Tables show their first rows. The exit
    code is 1 if a job finds a problem.

    \b
    Example:
      mq spark volume ~/store --html volume.html
    """


class SparkOption(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A NAME=VALUE argument."""

    name = "name=value"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not name or not equals:
            self.fail(f"{value!r} is not an option; use NAME=VALUE", param, ctx)
        return name, text


class Words(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """Some of these words, separated by commas."""

    name = "words"

    def __init__(self, pattern: str, what: str) -> None:
        self._pattern, self._what = re.compile(pattern, re.ASCII), what

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        found = tuple(dict.fromkeys(part.strip() for part in str(value).split(",")))
        if not all(map(self._pattern.fullmatch, found)):
            self.fail(f"{value!r}: {self._what} are expected, separated by commas", param, ctx)
        return found


fail_on_data_loss = click.option(
    "--fail-on-data-loss/--no-fail-on-data-loss",
    default=True,
    show_default=True,
    help="Fail if logs no longer have requested data, or continue and count it.",
)


@spark.command(short_help="Export messages as Parquet files, or as an Iceberg or Delta table.")
@job
@click.option("--out", required=True, help="Directory of the table; created if missing.")
@click.option(
    "--format", type=click.Choice(_FORMATS), default="parquet", show_default=True, help="Format of the table."
)
@click.option(
    "--topic", "topics", multiple=True, help="Export this topic; may be repeated. By default all except system topics."
)
@fail_on_data_loss
@click.option(
    "--slice-size",
    type=click.IntRange(0),
    default=256,
    show_default=True,
    help="GiB of a log to export in one step; 0: one log file.",
)
@click.option(
    "--file-size",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Approximate largest size of a file, in MiB.",
)
@click.option(
    "--columns",
    type=Words(r"\w+", "names of columns"),
    help="Columns to export, separated by commas; by default all. A later run may add columns.",
)
@click.option(
    "--catalog",
    type=SparkOption(),
    multiple=True,
    help="Property of the catalog of an Iceberg table: type=rest, uri=...; may be repeated. By default a file in --out.",
)
@click.option("--table", help="Name of the Iceberg table in its catalog; by default rocketmq.messages.")
@click.option("--compact", is_flag=True, help="Merge small files after the export; with --follow after each 60th one.")
@click.option("--follow", "is_following", is_flag=True, help="Export again and again until Ctrl-C or SIGTERM.")
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=60,
    show_default=True,
    help="With --follow: seconds from the begin of one export to that of the next.",
)
def export(
    stores: Stores,
    limit: int,
    out: str,
    format: str,
    topics: tuple[str, ...],
    fail_on_data_loss: bool,
    slice_size: int,
    file_size: int,
    columns: tuple[str, ...] | None,
    catalog: tuple[tuple[str, str], ...],
    table: str | None,
    compact: bool,
    is_following: bool,
    seconds: float,
) -> Findings:
    """Add messages that are in the stores, but not yet in the table in --out.

    Rows have the store, the log file and the physical offset. A second run adds new messages only. A killed run can be
    continued: nothing is missing, and nothing is added twice.

    \b
    Example:
      mq spark export ~/store --out /data/messages --topic Orders
    """
    from twisted_mq.spark.commands.export import COLUMNS, ExportSelection, export
    from twisted_mq.spark.commands.targets import MESSAGES

    wanted = ExportSelection(
        topics,
        columns or COLUMNS,
        fail_on_data_loss,
        slice_size << 30,
        file_size << 20,
        compact,
        dict(catalog),
        table or MESSAGES,
    )
    if is_following:
        return followed(stores, seconds, lambda now, turn: export(now, limit, out, format, of_turn(wanted, turn)))
    with progress("exporting", sum(stores.ends.values())) as advance:
        return export(stores, limit, out, format, wanted, advance)


def _access(servers: Servers) -> dict[str, str]:
    """Return the same for Spark's sink."""
    keys = servers.account()
    said = {
        "nameServer": servers.namesrv,
        "tls": str(servers.encrypted).lower(),
        "tlsCaFile": servers.tls_ca,
        "accessKey": None if keys is None else keys.access_key,
        "secretKey": None if keys is None else keys.secret_key,
    }
    return {name: value for name, value in said.items() if value}


@spark.command(short_help="Send a topic's messages again, with their ids and in order.")
@job
@click.option("--topic", "source", required=True, help="Topic in the stores.")
@click.option("--to", "target", help="Topic to send to, which must exist; by default the same topic.")
@click.option(
    "--from",
    "begin",
    type=StoreTime(),
    help="Select messages stored at or after this time: ms, or 2026-11-21T08:00:00.",
)
@click.option("--until", "end", type=StoreTime(), help="Select messages stored before this time.")
@click.option("--state", type=click.Path(dir_okay=False), help="File that stores the progress, to continue a replay.")
@fail_on_data_loss
@reaches_servers
@click.option(
    "--option",
    "options",
    type=SparkOption(),
    multiple=True,
    help="Option of the sink, such as accessKey=...; may be repeated.",
)
def replay(
    stores: Stores, limit: int, source: str, target: str | None, servers: Servers, begin: int | None, end: int | None,
    state: str | None, fail_on_data_loss: bool, options: tuple[tuple[str, str], ...],
) -> Findings:  # fmt: skip
    """Send the messages of a topic in the stores to a topic of running brokers.

    The messages of a source queue go to one queue in order, with tags, keys, user properties and unique keys. Delivery is
    at least once: after a restart with the same --state, a slice may be sent twice, with the same unique keys.

    \b
    Example:
      mq spark replay ~/store --topic Orders --to OrdersAgain --state replay.json
    """
    from twisted_mq.spark.commands.replay import Replay, replay

    times = {name: str(value) for name, value in (("startTime", begin), ("endTime", end)) if value is not None}
    wanted = Replay(source, target or source, {**_access(servers), **dict(options)}, times, state, fail_on_data_loss)
    with progress("sending", sum(stores.ends.values())) as advance:
        return replay(stores, limit, wanted, advance)


@spark.command(short_help="Compare a log with its queues and index, or a master with its slave.")
@job
@click.option("--slave", help="Store of the slave; both logs must be equal where both exist.")
def audit(stores: Stores, limit: int, slave: str | None) -> Findings:
    """Compare each store's records with its queue entries and its index, and with the log of a slave.

    Checks what `mq store verify` checks, for stores too large for one machine: records without an entry, entries without a
    record, keys that are not indexed, index entries without a key, damage.

    \b
    Example:
      mq spark audit ~/broker-a/store --slave ~/broker-a-slave/store
    """
    from twisted_mq.spark.commands.checks import audit
    from twisted_mq.spark.commands.stores import Stores as Opened

    return audit(stores, limit, None if slave is None else Opened.opened(stores.session, [slave]))


@spark.command(short_help="Find the messages with a key, and what happened to them.")
@job
@click.option("--key", required=True, help="Key or unique key of a message.")
@click.option(
    "--topic", "topics", multiple=True, help="Search only this topic; may be repeated. By default all topics."
)
@click.option("--scan", is_flag=True, help="Read the whole log instead of the index.")
def search(stores: Stores, limit: int, key: str, topics: tuple[str, ...], scan: bool) -> Findings:
    """Show every record with a key, in the order of storing: sent, delayed, half, committed, tried again, given up on.

    The index is searched first; the log is read where the index does not cover it. For an erasure request use --scan: an
    index has less than the log if its files were deleted or rebuilt.

    \b
    Example:
      mq spark search ~/store --key order-4711
    """
    from twisted_mq.spark.commands.search import search

    return search(stores, limit, key, topics, scan)


@spark.command("dead-letters", short_help="Show dead letters, retries, and storms of retries.")
@job
@every
@click.option(
    "--storm",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Number of retries in a time step that is a storm.",
)
def dead_letters(stores: Stores, limit: int, every: str, storm: int) -> Findings:
    """Show dead letters and retries by group, and the time steps in which a group had at least --storm retries.

    \b
    Example:
      mq spark dead-letters ~/store --every minute --storm 500
    """
    from twisted_mq.spark.commands.consumers import dead_letters

    return dead_letters(stores, limit, every, storm)


@spark.command(short_help="Find unfinished transactions and late timers.")
@job
@click.option(
    "--slack",
    type=click.IntRange(min=0),
    default=60,
    show_default=True,
    help="Number of seconds that a timer may be late.",
)
def unfinished(stores: Stores, limit: int, slack: int) -> Findings:
    """Show how transactions ended, which did not end, and delayed messages that are late.

    A message is overdue if it was due --slack seconds before the last message of the log and was not delivered.

    \b
    Example:
      mq spark unfinished ~/store
    """
    from twisted_mq.spark.commands.consumers import unfinished

    return unfinished(stores, limit, slack * 1000)


@spark.command(short_help="Show the lag of groups, and the age of their backlog.")
@job
@every
def lag(stores: Stores, limit: int, every: str) -> Findings:
    """Compare the consumer offsets of a store with its log.

    \b
    Example:
      mq spark lag ~/store
    """
    from twisted_mq.spark.commands.consumers import lag

    return lag(stores, limit, every)


@spark.command(short_help="Show percentiles of the time from born to stored.")
@job
@click.option(
    "--by",
    type=Words("topic|hour|host", "topic, hour or host"),
    default="topic",
    show_default=True,
    help="Columns to group by.",
)
def latency(stores: Stores, limit: int, by: Sequence[str]) -> Findings:
    """Show p50, p90, p99, p99.9 and the longest, by topic, hour of storing and producer host.

    \b
    Example:
      mq spark latency ~/store --by hour,topic
    """
    from twisted_mq.spark.commands.contents import latency

    return latency(stores, limit, by)


@spark.command(short_help="Find missing queue offsets.")
@job
def gaps(stores: Stores, limit: int) -> Findings:
    """Show missing offsets in queues.

    \b
    Example:
      mq spark gaps ~/store
    """
    from twisted_mq.spark.commands.contents import gaps

    return gaps(stores, limit)


@spark.command(short_help="Find messages that were sent more than once.")
@job
def duplicates(stores: Stores, limit: int) -> Findings:
    """Show unique keys that were sent several times, for example by retries of a producer.

    \b
    Example:
      mq spark duplicates ~/store
    """
    from twisted_mq.spark.commands.contents import duplicates

    return duplicates(stores, limit)


@spark.command(short_help="Show messages and bytes by topic, and over time.")
@job
@every
def volume(stores: Stores, limit: int, every: str) -> Findings:
    """Show which topics use the space, and when it was written.

    \b
    Example:
      mq spark volume ~/store --every day --html volume.html
    """
    from twisted_mq.spark.commands.contents import volume

    return volume(stores, limit, every)


@spark.command(short_help="Show what another retention time would free and delete.")
@job
@click.option(
    "--hours",
    type=Words("[0-9]{1,9}", "whole numbers"),
    default=_HOURS,
    show_default=True,
    help="Hours to keep messages.",
)
@click.option("--now", type=StoreTime(), help="Time to count back from; by default the last message.")
def retention(stores: Stores, limit: int, hours: Sequence[str], now: int | None) -> Findings:
    """Show by topic which log files, messages and bytes would be deleted, and which of these groups have not read.

    Log files are deleted as a whole, and never the last one.

    \b
    Example:
      mq spark retention ~/store --hours 24,168
    """
    from twisted_mq.spark.commands.contents import retention

    return retention(stores, limit, list(map(int, hours)), now)


@spark.command(short_help="Verify the order of strictly ordered queues.")
@job
def order(stores: Stores, limit: int) -> Findings:
    """Show epochs and sequences of strictly ordered queues in the stores of all groups, and every gap, swap or repeat.

    Checks what `mq order audit` checks, for stores too large for one machine.

    \b
    Example:
      mq spark order ~/broker-a/store ~/broker-b/store
    """
    from twisted_mq.spark.commands.checks import order

    return order(stores, limit)


@spark.command(short_help="Write an archive for --py-files, for workers without this project.")
@click.argument("file", type=click.Path(dir_okay=False), default="rocketmq.zip")
def pack(file: str) -> None:
    """Write FILE (default: rocketmq.zip) for --py-files of spark-submit: the project and its imports.

    Workers need the printed version of Python, the printed machine type and the printed packages.

    \b
    Example:
      mq spark pack rocketmq.zip
    """
    from twisted_mq.spark.pack import ON_WORKERS, write_pack

    write_pack(file)
    version, machine = sysconfig.get_python_version(), sysconfig.get_platform()
    size = os.path.getsize(file)
    print_table(
        ("file", "bytes", "python", "machine", "needs"), [(file, size, version, machine, ", ".join(ON_WORKERS))]
    )
