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
every = click.option("--every", type=click.Choice(_STEPS), default="hour", show_default=True, help="Steps of time.")


@click.group(short_help="Jobs over store directories with Spark: export, replay, audit, search, figures.")
def spark() -> None:
    """Jobs over store directories, this project's or Apache's, at rest or in use, with Spark.

    STORE is a directory (storePathRootDir), a pattern, or an URI of S3 or HDFS. Tables show their first rows. What a job
    finds wrong makes its exit code 1.

    \b
    Example:
      mq spark volume ~/store --html volume.html
    """


class Option(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A NAME=VALUE argument."""

    name = "name=value"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not name or not equals:
            self.fail(f"{value!r} is no option: give NAME=VALUE", param, ctx)
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
            self.fail(f"{value!r}: {self._what} are needed, with commas between", param, ctx)
        return found


fail_on_data_loss = click.option(
    "--fail-on-data-loss/--no-fail-on-data-loss",
    default=True,
    show_default=True,
    help="Fail, or go on and count, where logs no longer have what is wanted.",
)


@spark.command(short_help="Messages as Parquet files, an Iceberg or a Delta table, by topic and day.")
@job
@click.option("--out", required=True, help="The directory of the table; made if missing.")
@click.option("--format", type=click.Choice(_FORMATS), default="parquet", show_default=True, help="Kind of table.")
@click.option(
    "--topic", "topics", multiple=True, help="This topic, may be repeated; all but the broker's own by default."
)
@fail_on_data_loss
@click.option(
    "--slice-size",
    type=click.IntRange(0),
    default=256,
    show_default=True,
    help="GiB of a log added in one step; 0: a log file.",
)
@click.option(
    "--file-size", type=click.IntRange(1), default=256, show_default=True, help="About the largest file, in MiB."
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
) -> Findings:
    """Add to the table in --out what the stores have and it has not.

    Rows keep store, log file and physical offset. Run again it adds what is new; killed, it goes on where it was, nothing
    missing and nothing twice.

    \b
    Example:
      mq spark export ~/store --out /data/messages --topic Orders
    """
    from twisted_mq.spark.commands.export import Wanted, export

    with progress("exporting", sum(stores.ends.values())) as advance:
        wanted = Wanted(
            topics, fail_on_data_loss=fail_on_data_loss, slice_bytes=slice_size << 30, file_bytes=file_size << 20
        )
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
@click.option("--topic", "source", required=True, help="The topic in the stores.")
@click.option("--to", "target", help="The topic to send to; the same by default. It must exist.")
@click.option("--from", "begin", type=StoreTime(), help="Messages stored then or later: ms, or 2026-11-21T08:00:00.")
@click.option("--until", "end", type=StoreTime(), help="Messages stored before.")
@click.option("--state", type=click.Path(dir_okay=False), help="A file that says how far the replay came, to go on.")
@fail_on_data_loss
@reaches_servers
@click.option(
    "--option", "options", type=Option(), multiple=True, help="An option of the sink, as accessKey=...; repeated."
)
def replay(
    stores: Stores, limit: int, source: str, target: str | None, servers: Servers, begin: int | None, end: int | None,
    state: str | None, fail_on_data_loss: bool, options: tuple[tuple[str, str], ...],
) -> Findings:  # fmt: skip
    """Send the messages of a topic in the stores to a topic of running brokers.

    A source queue's messages go to one queue in their order, with tags, keys, the users' properties and unique keys. At
    least once: started again with the same --state, a slice of the log may come a second time, with the same unique keys.

    \b
    Example:
      mq spark replay ~/store --topic Orders --to OrdersAgain --state replay.json
    """
    from twisted_mq.spark.commands.replay import Replay, replay

    times = {name: str(value) for name, value in (("startTime", begin), ("endTime", end)) if value is not None}
    wanted = Replay(source, target or source, {**_access(servers), **dict(options)}, times, state, fail_on_data_loss)
    with progress("sending", sum(stores.ends.values())) as advance:
        return replay(stores, limit, wanted, advance)


@spark.command(short_help="The log against queues and index, a master against its slave.")
@job
@click.option("--slave", help="The store of this store's slave: their logs must be the same where both have one.")
def audit(stores: Stores, limit: int, slave: str | None) -> Findings:
    """Compare each store's records with its queue entries and its index, and with the log of a slave.

    What `mq store verify` says, for stores too large for one machine: records without an entry, entries without a record,
    keys that are not indexed, index entries without a key, damage.

    \b
    Example:
      mq spark audit ~/broker-a/store --slave ~/broker-a-slave/store
    """
    from twisted_mq.spark.commands.checks import audit
    from twisted_mq.spark.commands.stores import Stores as Opened

    return audit(stores, limit, None if slave is None else Opened.opened(stores.session, [slave]))


@spark.command(short_help="Where a key's messages are, and what became of them.")
@job
@click.option("--key", required=True, help="One of a message's KEYS, or its unique key.")
@click.option("--topic", "topics", multiple=True, help="Sent to this topic, may be repeated; any by default.")
@click.option("--scan", is_flag=True, help="Read all of the log, whatever the index says.")
def search(stores: Stores, limit: int, key: str, topics: tuple[str, ...], scan: bool) -> Findings:
    """Show every record with a key, in the order of storing: sent, delayed, half, committed, tried again, given up on.

    The index is asked first, and the log is read that it does not cover. An erasure request asks with --scan: an index
    keeps less than the log where its files were deleted or rebuilt.

    \b
    Example:
      mq spark search ~/store --key order-4711
    """
    from twisted_mq.spark.commands.search import search

    return search(stores, limit, key, topics, scan)


@spark.command("dead-letters", short_help="What consumers gave up on, retries, and storms of them.")
@job
@every
@click.option(
    "--storm", type=click.IntRange(min=1), default=1000, show_default=True, help="So many retries are a storm."
)
def dead_letters(stores: Stores, limit: int, every: str, storm: int) -> Findings:
    """Show dead letters and retries by group, and when a group had --storm retries in a step of time.

    \b
    Example:
      mq spark dead-letters ~/store --every minute --storm 500
    """
    from twisted_mq.spark.commands.consumers import dead_letters

    return dead_letters(stores, limit, every, storm)


@spark.command(short_help="Half messages without an end, timers that are late.")
@job
@click.option(
    "--slack", type=click.IntRange(min=0), default=60, show_default=True, help="Seconds that a timer may be late."
)
def unfinished(stores: Stores, limit: int, slack: int) -> Findings:
    """Show how transactions ended and which did not, and delayed and timed messages against when they were due.

    Overdue is what was due --slack seconds before the last message of the log, and has no delivered copy in it.

    \b
    Example:
      mq spark unfinished ~/store
    """
    from twisted_mq.spark.commands.consumers import unfinished

    return unfinished(stores, limit, slack * 1000)


@spark.command(short_help="How far groups are behind, and from when their backlog is.")
@job
@every
def lag(stores: Stores, limit: int, every: str) -> Findings:
    """Compare the offsets that a store's broker wrote down with its log.

    \b
    Example:
      mq spark lag ~/store
    """
    from twisted_mq.spark.commands.consumers import lag

    return lag(stores, limit, every)


@spark.command(short_help="Percentiles of the time from born to stored.")
@job
@click.option(
    "--by",
    type=Words("topic|hour|host", "topic, hour or host"),
    default="topic",
    show_default=True,
    help="Told apart by.",
)
def latency(stores: Stores, limit: int, by: Sequence[str]) -> Findings:
    """Show p50, p90, p99, p99.9 and the longest, by topic, hour of storing and producers' hosts.

    \b
    Example:
      mq spark latency ~/store --by hour,topic
    """
    from twisted_mq.spark.commands.contents import latency

    return latency(stores, limit, by)


@spark.command(short_help="Queue offsets that are missing.")
@job
def gaps(stores: Stores, limit: int) -> Findings:
    """Show the holes in queues.

    \b
    Example:
      mq spark gaps ~/store
    """
    from twisted_mq.spark.commands.contents import gaps

    return gaps(stores, limit)


@spark.command(short_help="Messages that were sent more than once.")
@job
def duplicates(stores: Stores, limit: int) -> Findings:
    """Show unique keys that were sent several times, as a producer's retry leaves them.

    \b
    Example:
      mq spark duplicates ~/store
    """
    from twisted_mq.spark.commands.contents import duplicates

    return duplicates(stores, limit)


@spark.command(short_help="Messages and bytes by topic, and over time.")
@job
@every
def volume(stores: Stores, limit: int, every: str) -> Findings:
    """Show what takes the space, and when it came.

    \b
    Example:
      mq spark volume ~/store --every day --html volume.html
    """
    from twisted_mq.spark.commands.contents import volume

    return volume(stores, limit, every)


@spark.command(short_help="What keeping messages for another time would free and lose.")
@job
@click.option(
    "--hours", type=Words("[0-9]{1,9}", "whole numbers"), default=_HOURS, show_default=True, help="Kept for so long."
)
@click.option("--now", type=StoreTime(), help="Counted from then; from the last message by default.")
def retention(stores: Stores, limit: int, hours: Sequence[str], now: int | None) -> Findings:
    """Show which log files, messages and bytes would be gone, by topic, and what groups have not read of it.

    Log files go as a whole, and never the last one.

    \b
    Example:
      mq spark retention ~/store --hours 24,168
    """
    from twisted_mq.spark.commands.contents import retention

    return retention(stores, limit, list(map(int, hours)), now)


@spark.command(short_help="Whether strictly ordered queues are in order.")
@job
def order(stores: Stores, limit: int) -> Findings:
    """Show epochs and sequences of strictly ordered queues in the stores of all groups, and every gap, swap or repeat.

    What `mq order audit` says, for stores too large for one machine.

    \b
    Example:
      mq spark order ~/broker-a/store ~/broker-b/store
    """
    from twisted_mq.spark.commands.checks import order

    return order(stores, limit)


@spark.command(short_help="An archive for --py-files: what workers lack of this project.")
@click.argument("file", type=click.Path(dir_okay=False), default="rocketmq.zip")
def pack(file: str) -> None:
    """Write FILE, rocketmq.zip by default, for spark-submit's --py-files: the project, and what it imports.

    Workers bring Python of the version and machine that is printed, with the packages that are printed.

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
