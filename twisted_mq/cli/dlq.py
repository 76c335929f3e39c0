"""Implements `mq dlq`: lists, shows, saves and sends again the messages that consumer groups gave up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.cli.asking import BEGINNINGS, ask, time_ms_of
from twisted_mq.cli.consume import message_row, writer
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import Row, json_line, print_table
from twisted_mq.cli.server_options import reaches_servers
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX

if TYPE_CHECKING:
    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.servers import Servers
    from twisted_mq.protocol.messages.message import MessageExt

COLUMNS = ("group", "messages", "notResent")
RESENT = "status", "topic", "msgId", "tags", "keys", "body"
EVERYTHING = 1 << 31
WOULD = "would be sent"
KEY = click.option("--key", help="Select only messages with this key.")
ID = click.option("--id", "message_id", help="Select only the message with this id.")
UNTIL = click.option("--until", help="Select only dead letters stored before this time, such as 2026-11-22T08:00.")


@attrs.frozen
class Choice:
    """A choice of dead letters, None for any; times are when the group gave up, in ms since 1970."""

    key: str | None = None
    message_id: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None

    @classmethod
    def of(cls, key: str | None, message_id: str | None, since: str | None, until: str | None) -> Choice:
        """Return the choice of the options. Raises CliError for a malformed time."""
        since_ms = None if since is None else time_ms_of(since, "--since")
        return cls(key, message_id, since_ms, None if until is None else time_ms_of(until, "--until"))

    def has(self, message: MessageExt) -> bool:
        ids = message.unique_key, message.msg_id, message.properties.get("DLQ_ORIGIN_MESSAGE_ID")
        stored_ms = message.store_timestamp
        return (
            (self.key is None or self.key in message.keys)
            and (self.message_id is None or self.message_id in ids)
            and (self.from_ms is None or stored_ms >= self.from_ms)
            and (self.until_ms is None or stored_ms < self.until_ms)
        )


@click.group()
def dlq() -> None:
    """List, show, export and resend dead letters.

    A dead letter is a message that a consumer group failed to consume too often.

    \b
    Example:
      mq dlq list
      mq dlq show audit
    """


@dlq.command("list", short_help="List groups that have dead letters.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@reaches_servers
def list_groups(as_json: bool, servers: Servers) -> None:
    """List groups with dead letters: how many each has, and how many `mq dlq resend` has not sent yet."""
    rows = ask(servers, groups)
    if not as_json:
        print_table(COLUMNS, rows)
        return
    for row in rows:
        sys.stdout.write(json_line(dict(zip(COLUMNS, row, strict=True))))  # type: ignore[arg-type]


@dlq.command(short_help="Print a group's dead letters.")
@click.argument("group")
@click.option("--from", "beginning", default="earliest", show_default=True, help=f"{BEGINNINGS}.")
@UNTIL
@KEY
@ID
@click.option("--count", default=10, show_default=True, type=click.IntRange(1), help="Maximum number of messages.")
@click.option("--json", "form", flag_value="json", help="Print one JSON object per message, like `mq consume --json`.")
@reaches_servers
def show(
    group: str,
    beginning: str,
    until: str | None,
    key: str | None,
    message_id: str | None,
    count: int,
    form: str | None,
    servers: Servers,
) -> None:
    """Print dead letters of GROUP; with --json the property RETRY_TOPIC is the original topic."""
    _print(group, beginning, Choice.of(key, message_id, None, until), count, form, servers)


@dlq.command(short_help="Print the dead letters of a group as JSON lines.")
@click.argument("group")
@click.option("--from", "beginning", default="earliest", show_default=True, help=f"{BEGINNINGS}.")
@UNTIL
@KEY
@ID
@reaches_servers
def export(
    group: str, beginning: str, until: str | None, key: str | None, message_id: str | None, servers: Servers
) -> None:
    """Print all or selected dead letters of GROUP, one JSON object per line.

    \b
    Example:
      mq dlq export audit > dead-letters.jsonl
    """
    _print(group, beginning, Choice.of(key, message_id, None, until), EVERYTHING, "json", servers)


def _print(group: str, beginning: str, choice: Choice, count: int, form: str | None, servers: Servers) -> None:
    from twisted_mq.cli.peek import first_messages

    async def main(admin: AdminContext) -> None:
        await _check(admin, group)
        write, left = writer(form, sys.stdout), count
        async for message in first_messages(admin, DLQ_PREFIX + group, beginning, EVERYTHING):
            if choice.has(message):
                write(message)
                left -= 1
            if not left:
                return

    ask(servers, main)


@dlq.command(short_help="Send dead letters to their topics again.")
@click.argument("group")
@KEY
@ID
@click.option("--since", help="Select only dead letters stored since this time, such as 2026-11-22T08:00.")
@UNTIL
@click.option("--again", is_flag=True, help="Send dead letters again that were already sent again.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, without sending it.")
@reaches_servers
def resend(
    group: str,
    key: str | None,
    message_id: str | None,
    since: str | None,
    until: str | None,
    again: bool,
    dry_run: bool,
    servers: Servers,
) -> None:
    """Send dead letters of GROUP to their original topics, each once. The broker stores the progress as
    the offset of the group GROUP-resent. With --key, --id, --since or --until that offset does not change.

    \b
    Examples:
      mq dlq resend audit --dry-run
      mq dlq resend audit --key order-17
      mq dlq resend audit --since 2026-11-22T08:00 --until 2026-11-22T09:00
    """
    from twisted_mq.admin.dead_letters import resend as send_again

    choice = Choice.of(key, message_id, since, until)
    wanted = None if choice == Choice() else choice.has

    async def main(admin: AdminContext) -> list[Row]:
        await _check(admin, group)
        return [
            (WOULD if one.result is None else one.result.status.name, one.message.topic, *message_row(one.dead)[3:])
            async for one in send_again(admin, group, wanted, again=again, preview=dry_run)
        ]

    print_table(RESENT, ask(servers, main))


async def groups(admin: AdminContext) -> list[Row]:
    """Return each group with its dead letters, and those that were not sent again."""
    from twisted_mq.admin.dead_letters import given_up

    return [(one.group, one.messages, one.not_resent) for one in await given_up(admin)]


async def _check(admin: AdminContext, group: str) -> None:
    topics = await admin.topic_list()
    if DLQ_PREFIX + group not in topics:
        known = ", ".join(sorted(one.removeprefix(DLQ_PREFIX) for one in topics if one.startswith(DLQ_PREFIX)))
        raise CliError(f"group {group} has no dead letters", f"groups that have dead letters: {known or 'none'}")
