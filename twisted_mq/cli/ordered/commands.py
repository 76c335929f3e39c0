"""Defines the commands below `mq order`, their options, and what they print."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from twisted_mq.cli.output import json_line, print_table
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from twisted_mq.admin.ordered_states import TopicState
    from twisted_mq.cli.ordered.session import OrderCommandSession, SessionSettings
    from twisted_mq.cli.servers import Servers

HEAD_SECONDS = 10.0
"""The time that a new topic has to get its heads, and a retired group to leave the send lists."""
LOOK_SECONDS = 0.2
WATCH_SECONDS = 1.0

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option(
        "--coordinator",
        envvar="MQ_ORDER_COORDINATOR",
        help="ZooKeeper as HOST:PORT,HOST:PORT/chroot.  [default: asked from the brokers]",
    ),
    click.option(
        "--auth",
        envvar="MQ_ORDER_AUTH",
        default="",
        help="ZooKeeper digest credentials, USER:PASSWORD; the variable MQ_ORDER_AUTH is safer.",
    ),
    click.option("--ca-file", default="", help="TLS to ZooKeeper: certificate of the authority (PEM file)."),
    click.option("--cert-file", default="", help="TLS to ZooKeeper: client certificate (PEM file)."),
    click.option("--key-file", default="", help="TLS to ZooKeeper: private key of the client certificate (PEM file)."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line."),
)


def connected(command: F) -> F:
    """Add the options of all commands; the function gets them as `connection`."""

    @functools.wraps(command)
    def with_connection(
        servers: Servers, coordinator: str | None, auth: str, ca_file: str, cert_file: str, key_file: str, **rest: Any
    ) -> Any:
        from twisted_mq.cli.ordered.session import SessionSettings

        connection = SessionSettings(servers, coordinator, auth, ca_file, cert_file, key_file)
        return command(connection=connection, **rest)

    found: Any = with_connection
    for option in reversed(OPTIONS):
        found = option(found)
    return reaches_servers(found)  # type: ignore[no-any-return]


@click.command(short_help="Declare an ordered topic.")
@click.argument("topic")
@click.option("--queues", required=True, type=click.IntRange(1), help="Number of ordered queues.")
@click.option("--groups", required=True, help="Broker names separated by commas, preferred ones first.")
@click.option("--together", is_flag=True, help="Move all queues together, so that Apache's clients can use the topic.")
@connected
def create(connection: SessionSettings, topic: str, queues: int, groups: str, together: bool, as_json: bool) -> None:
    """Declare TOPIC as strictly ordered, at the coordinator and at all brokers of its groups.

    A second run finishes what a first one began, and adds groups that are new in it.
    """
    from twisted_mq.cli.ordered import declare
    from twisted_mq.cli.ordered.session import run_session

    declared = declare.declaration(topic, queues, groups, together=together)

    async def work(session: OrderCommandSession) -> None:
        await declare.create(session, declared)
        _print(await _with_heads(session, topic), as_json)

    run_session(connection, work)


async def _with_heads(session: OrderCommandSession, topic: str) -> TopicState:
    from twisted_mq.admin.ordered_topics import read_state

    limit_ms = session.admin.now_ms() + HEAD_SECONDS * 1000
    while True:
        state = await read_state(session, topic)
        if all(unit.lists.head for unit in state.units) or session.admin.now_ms() >= limit_ms:
            return state
        await session.admin.sleep(LOOK_SECONDS)


@click.command(short_help="Show lists, heads, backlog, health and leaders.")
@click.argument("topic")
@click.option("--watch", is_flag=True, help="Show it again after each change, until Ctrl-C.")
@connected
def show(connection: SessionSettings, topic: str, watch: bool, as_json: bool) -> None:
    """Show the queues and groups of TOPIC. If something is blocked, the output says why and what to do."""
    from twisted_mq.admin.ordered_topics import read_state
    from twisted_mq.cli.ordered.session import run_session

    async def work(session: OrderCommandSession) -> None:
        shown = await read_state(session, topic)
        _print(shown, as_json)
        while watch:
            await session.admin.sleep(WATCH_SECONDS)
            state = await _state_or_none(session, topic)
            if state is not None and state != shown:
                shown = state
                _print(shown, as_json)

    run_session(connection, work)


async def _state_or_none(session: OrderCommandSession, topic: str) -> TopicState | None:
    """Return the state; None, with a warning, while the coordinator is away: a user who watches wants to see what comes after."""
    from twisted_mq.admin.ordered_topics import read_state
    from twisted_mq.client.ordered.errors import CoordinatorUnreachable
    from twisted_mq.coordination.interfaces import NoAnswer, SessionLost

    try:
        return await read_state(session, topic)
    except (NoAnswer, SessionLost, CoordinatorUnreachable) as error:
        session.admin.warn(str(error))
        return None


def _print(state: TopicState, as_json: bool) -> None:
    from twisted_mq.cli.ordered.state import COLUMNS, GROUP_COLUMNS, group_row, state_json, unit_row

    if as_json:
        sys.stdout.write(json_line(state_json(state)))
    else:
        print_table(COLUMNS, [unit_row(state, unit) for unit in state.units])
        print_table(GROUP_COLUMNS, [group_row(group) for group in state.groups.values()])
    sys.stdout.flush()


@click.command(short_help="Let a group accept no more sends.")
@click.argument("group")
@connected
def retire(connection: SessionSettings, group: str, as_json: bool) -> None:
    """Let GROUP accept no more ordered sends, and wait until it has left all send lists.

    Its messages are still consumed. Stop its brokers after `mq order show` lists it in no consume list.
    """
    from twisted_mq.cli.ordered.groups import left_send_lists, wish
    from twisted_mq.cli.ordered.session import run_session

    async def work(session: OrderCommandSession) -> None:
        await wish(session, group, retired=True)
        still = await left_send_lists(session, group, HEAD_SECONDS)
        text = f"{group} is retired" + (f"; still in the send lists of {', '.join(still)}" if still else "")
        _say(text, {"group": group, "retired": True, "sendLists": still}, as_json)

    run_session(connection, work)


@click.command(short_help="Let a retired group accept sends again.")
@click.argument("group")
@connected
def restore(connection: SessionSettings, group: str, as_json: bool) -> None:
    """Let GROUP accept sends again: it joins the end of the send lists when it is healthy and has no backlog."""
    from twisted_mq.cli.ordered.groups import wish
    from twisted_mq.cli.ordered.session import run_session

    async def work(session: OrderCommandSession) -> None:
        await wish(session, group, retired=False)
        _say(f"{group} joins the send lists when it is healthy", {"group": group, "retired": False}, as_json)

    run_session(connection, work)


@click.command(short_help="Move a queue to another group.")
@click.argument("topic")
@click.argument("queue")
@click.argument("group")
@connected
def move(connection: SessionSettings, topic: str, queue: str, group: str, as_json: bool) -> None:
    """Move the sends of QUEUE of TOPIC to GROUP. QUEUE is `all` for a topic whose queues move together."""
    from twisted_mq.cli.ordered import groups
    from twisted_mq.cli.ordered.session import run_session

    async def work(session: OrderCommandSession) -> None:
        lists = await groups.move(session, topic, queue, group)
        text = f"{group} takes the sends of {topic} queue {queue} in epoch {lists.epoch}"
        _say(text, {"topic": topic, "unit": queue, "head": lists.head, "epoch": lists.epoch}, as_json)

    run_session(connection, work)


@click.command(short_help="Repair lists that are older than the stores.")
@click.argument("topic")
@click.option("--yes", is_flag=True, help="Write the lists; without --yes they are only shown.")
@click.option("--without", multiple=True, metavar="GROUP", help="Group whose stores are lost; may be repeated.")
@connected
def repair(connection: SessionSettings, topic: str, yes: bool, without: tuple[str, ...], as_json: bool) -> None:
    """Repair the lists of TOPIC so that they match the brokers' stores. Without --yes the new lists are only shown.

    Use it for queues that are blocked because ZooKeeper was restored from an older snapshot. All stored messages that are not
    consumed yet are consumed next, in the order of their epochs.
    """
    from twisted_mq.cli.ordered import repair as repairing
    from twisted_mq.cli.ordered.session import run_session

    async def work(session: OrderCommandSession) -> None:
        found = await repairing.find_repairs(session, topic, without)
        if found and yes:
            await repairing.write_repairs(session, topic, found)
        if as_json:
            rows: list[Any] = [one.as_json() for one in found]
            click.echo(json_line({"topic": topic, "repairs": rows, "written": yes}), nl=False)
            return
        print_table(repairing.COLUMNS, [one.row() for one in found])
        ending = "written" if yes else "not written yet: add --yes"
        click.echo(f"{len(found)} queues to repair, {ending}" if found else f"{topic} does not need repair")

    run_session(connection, work)


@click.command(short_help="Delete an ordered topic.")
@click.argument("topic")
@connected
def delete(connection: SessionSettings, topic: str, as_json: bool) -> None:
    """Delete TOPIC with all its messages, at the coordinator, the brokers and the name servers."""
    from twisted_mq.cli.ordered import declare
    from twisted_mq.cli.ordered.session import run_session

    async def work(session: OrderCommandSession) -> None:
        await declare.delete(session, topic)
        _say(f"{topic} is deleted", {"topic": topic, "deleted": True}, as_json)

    run_session(connection, work)


def _say(text: str, value: dict[str, Any], as_json: bool) -> None:
    click.echo(json_line(value) if as_json else text, nl=not as_json)
