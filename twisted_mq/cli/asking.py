"""Connects the commands of `mq` that only ask, and says where reading begins."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from twisted_mq.cli.errors import CliError

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.admin.queues import TopicReader
    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.servers import Servers
    from twisted_mq.protocol.bodies import MessageQueue

R = TypeVar("R")
BEGINNINGS = "earliest, latest, a queue offset, or a time such as 2026-11-22T08:00"


def ask(servers: Servers, work: Callable[[AdminContext], Coroutine[Any, Any, R]]) -> R:
    """Return the result of the work, over connections that are closed after it. Raises its errors."""
    from twisted_mq.cli.admin.connected import connected
    from twisted_mq.cli.errors import report
    from twisted_mq.cli.run import run_under_reactor

    async def main(reactor: IReactorTime) -> R:
        with connected(reactor, servers, click.echo, lambda text: report("mq", text)) as admin:
            return await work(admin)

    return run_under_reactor(main)


async def begin_of(reader: TopicReader, queue: MessageQueue, beginning: str) -> int:
    """Return the offset where reading a queue begins. Raises CliError for a malformed beginning."""
    if beginning == "earliest":
        return await reader.min_offset(queue)
    if beginning == "latest":
        return await reader.max_offset(queue)
    if is_offset(beginning):
        return int(beginning)
    return await reader.offset_at(queue, time_ms_of(beginning, "--from"))


def is_offset(text: str) -> bool:
    """Return True if the text is a queue offset: up to 18 digits."""
    return text.isascii() and text.isdigit() and len(text) < 19


def time_ms_of(text: str, option: str) -> int:
    """Return a time in ms since 1970; without a zone it is in this machine's. Raises CliError for a malformed text."""
    try:
        return int(datetime.datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        given = BEGINNINGS if option == "--from" else "a time such as 2026-11-22T08:00"
        kind = "position" if option == "--from" else "time"
        raise CliError(f"{option} {text} is not a {kind}", f"give {given}") from None
