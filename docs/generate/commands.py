"""Help texts of all commands, as the commands print them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import click

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.tap import Options as BrokerCommand
from twisted_mq.cli.admin.registry import served, sub_commands
from twisted_mq.cli.mq import mq
from twisted_mq.config.command_line import DaemonOptions
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.tap import Options as NamesrvCommand
from twisted_mq.proxy.options import ProxyServiceOptions
from twisted_mq.proxy.tap import Options as ProxyCommand

Daemon: TypeAlias = (
    type[DaemonOptions[NamesrvOptions]] | type[DaemonOptions[BrokerOptions]] | type[DaemonOptions[ProxyServiceOptions]]
)
DAEMONS: dict[str, Daemon] = {"mqnamesrv": NamesrvCommand, "mqbroker": BrokerCommand, "mqproxy": ProxyCommand}
WIDTH = 110


def mq_help() -> str:
    """`mq` and each command below it."""
    return "\n".join(_section(path, text) for path, text in _click_help(mq, click.Context(mq, info_name="mq")))


def _click_help(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    context.max_content_width = WIDTH
    context.terminal_width = WIDTH
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _click_help(found, click.Context(found, info_name=name, parent=context))


def mqadmin_help() -> str:
    """Each subcommand with what it does, and those that are not served, with the reason."""
    helps = [_section(command.name, command.help, f"To {command.text}.") for command in served()]
    rows = [f"| `{command.name}` | {command.refusal} |" for command in sub_commands() if command.module is None]
    return "\n".join([*helps, "### Not served\n", "| subcommand | why |", "|---|---|", *rows, ""])


def daemon_help() -> str:
    """The plugins of twistd."""
    return "\n".join(_section(f"twistd {name}", command().getUsage(WIDTH)) for name, command in DAEMONS.items())


def _section(title: str, text: str, words: str = "") -> str:
    return f"### {title}\n\n{words}\n\n```text\n{text.strip()}\n```\n"
