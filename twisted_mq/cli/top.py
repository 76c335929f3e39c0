"""Implements `mq top`: topics and groups of a cluster as they are now: rates, lags, members."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from twisted_mq.cli.asking import ask
from twisted_mq.cli.output import Row, boxed, json_line, print_table
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from rich.console import RenderableType

    from twisted_mq.admin.calls import AdminCalls
    from twisted_mq.admin.lag import TopicLag
    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.servers import Servers

AT_ONCE = 16
"""Requests in flight at a time."""
R = TypeVar("R", bound="TopicRates | GroupRow")
Show = Callable[["Sequence[TopicRates]", "Sequence[GroupRow]"], None]


@attrs.frozen
class Look:
    """The result of a look: the ends of topics (the sums of their queues' begins and ends), and groups by topic."""

    seconds: float
    topics: dict[str, tuple[int, int]]
    groups: dict[tuple[str, str], TopicLag]


@attrs.frozen
class TopicRates:
    """A topic; rates are messages a second between two looks."""

    name: str
    messages: int
    rate: float
    groups: int
    lag: int


@attrs.frozen
class GroupRow:
    """A group on a topic."""

    name: str
    topic: str
    members: int
    lag: int
    rate: float
    behind_seconds: int | None


TOPICS = ("topic", "messages", "inPerSecond", "groups", "lag")
GROUPS = ("group", "topic", "members", "lag", "outPerSecond", "behindSeconds")
SORTS: dict[str, Callable[[Any], Any]] = {
    "lag": lambda row: (-row.lag, row.name),
    "rate": lambda row: (-row.rate, row.name),
    "name": lambda row: row.name,
}


@click.command(short_help="Show rates and lags of topics and groups, live.")
@click.option(
    "--interval", default=2.0, show_default=True, type=click.FloatRange(0.1, 3600), help="Seconds between two updates."
)
@click.option("--once", is_flag=True, help="Print the rates between two updates, then stop.")
@click.option("--sort", default="lag", show_default=True, type=click.Choice(list(SORTS)), help="Column to sort by.")
@click.option("--match", default="", help="Show only topics and groups whose name matches this regular expression.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@reaches_servers
def top(interval: float, once: bool, sort: str, match: str, as_json: bool, servers: Servers) -> None:
    """Show the messages that each topic receives and delivers, and the lag of each group, until Ctrl-C.

    Rates are the changes of queue ends and group offsets between two updates.

    \b
    Example:
      mq top --sort rate
      mq top --once --json
    """
    try:
        wanted = re.compile(match)
    except re.error as error:
        raise click.UsageError(f"--match {match}: {error}.") from None

    from twisted_mq.admin.errors import AdminError
    from twisted_mq.protocol.errors import ProtocolError
    from twisted_mq.remoting.errors import RemotingError

    async def main(admin: AdminContext) -> None:
        with _shown(as_json, live=not once) as show:
            before = await look(admin, wanted)
            while True:
                await admin.sleep(interval)
                try:
                    now = await look(admin, wanted)
                except (AdminError, ProtocolError, RemotingError):
                    if once:
                        raise
                    continue  # the servers come back
                topics, groups = rows(before, now)
                show(sorted(topics, key=SORTS[sort]), sorted(groups, key=SORTS[sort]))
                before = now
                if once:
                    return

    ask(servers, main)


async def look(admin: AdminCalls, wanted: re.Pattern[str]) -> Look:
    """Return users' topics and groups with matching names; those that cannot be asked are left out."""
    from twisted_mq.admin.lag import groups_among, lag_by_topic
    from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX, is_system_topic

    everything = await admin.topic_list()
    found_lags = await _each(lambda group: lag_by_topic(admin, group), groups_among(everything))
    names = [
        topic
        for topic in everything
        if wanted.search(topic) and not is_system_topic(topic) and not topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    ]
    ends = await _each(lambda topic: _ends(admin, topic), names)
    found = {name: end for name, end in zip(names, ends, strict=True) if end is not None}
    states = [one for of_group in found_lags for one in of_group]
    groups = {(one.group, one.topic): one for one in states if wanted.search(one.group) or wanted.search(one.topic)}
    return Look(admin.now_ms() / 1000, found, groups)


async def _each(work: Callable[[str], Coroutine[Any, Any, Any]], items: Sequence[str]) -> list[Any]:
    """Return the results of the work for each item, some at a time."""
    from twisted.internet.defer import DeferredSemaphore, gatherResults

    turns = DeferredSemaphore(AT_ONCE)
    running = [turns.run(work, item) for item in items]
    return await gatherResults(running, consumeErrors=True)


async def _ends(admin: AdminCalls, topic: str) -> tuple[int, int] | None:
    from twisted_mq.admin.groups import addresses_of
    from twisted_mq.protocol.errors import ProtocolError
    from twisted_mq.remoting.errors import RemotingError

    first = last = 0
    try:
        for address in addresses_of(await admin.topic_route(topic)):
            table = (await admin.topic_stats(address, topic)).offset_table
            first += sum(one.min_offset for one in table.values())
            last += sum(one.max_offset for one in table.values())
    except (ProtocolError, RemotingError):
        return None
    return first, last


def rows(before: Look, now: Look) -> tuple[list[TopicRates], list[GroupRow]]:
    """Return the current state, and how fast it changed since; new rows have a rate of 0."""
    seconds = max(now.seconds - before.seconds, 0.001)
    topics = []
    for name, (first, last) in now.topics.items():
        of_topic = [one for one in now.groups.values() if one.topic == name]
        rate = (last - before.topics.get(name, (first, last))[1]) / seconds
        topics.append(
            TopicRates(name, last - first, max(0.0, rate), len(of_topic), sum(one.waiting for one in of_topic))
        )
    groups = []
    for key, one in now.groups.items():
        rate = (one.committed - before.groups.get(key, one).committed) / seconds
        groups.append(GroupRow(one.group, one.topic, one.members, one.waiting, max(0.0, rate), one.behind_seconds))
    return topics, groups


@contextlib.contextmanager
def _shown(as_json: bool, *, live: bool) -> Any:
    """Return the display of looks: a live table on a terminal, lines everywhere else."""
    if as_json or not live or not sys.stdout.isatty():
        yield _print_json if as_json else _print_tables
        return
    from rich.live import Live

    with Live(auto_refresh=False, screen=True) as picture:
        yield lambda topics, groups: picture.update(_tables(topics, groups), refresh=True)


def _tables(topics: Sequence[TopicRates], groups: Sequence[GroupRow]) -> RenderableType:
    from rich.console import Group

    return Group(boxed(TOPICS, _texts(topics)), boxed(GROUPS, _texts(groups)))


def _print_tables(topics: Sequence[TopicRates], groups: Sequence[GroupRow]) -> None:
    print_table(TOPICS, _texts(topics))
    print_table(GROUPS, _texts(groups))
    sys.stdout.flush()


def _print_json(topics: Sequence[TopicRates], groups: Sequence[GroupRow]) -> None:
    for columns, found in ((TOPICS, topics), (GROUPS, groups)):
        for row in found:
            sys.stdout.write(json_line({"kind": columns[0], **dict(zip(columns, attrs.astuple(row), strict=True))}))
    sys.stdout.flush()


def _texts(found: Sequence[R]) -> list[Row]:
    """Return rows with their rates to a tenth."""
    return [[f"{value:.1f}" if isinstance(value, float) else value for value in attrs.astuple(row)] for row in found]
