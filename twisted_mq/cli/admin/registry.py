"""The table of subcommands, in the order of Apache's tool; each is one module with OPTIONS and run()."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Sequence

import attrs

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import GLOBAL_OPTIONS, CommandLine, Option, help_text

Run = Callable[[AdminContext, CommandLine], Awaitable[None]]


@attrs.frozen
class SubCommand:
    """One subcommand. `module` is loaded only when the subcommand is used."""

    name: str
    text: str
    module: str
    alias: str | None = None

    @property
    def options(self) -> Sequence[Option]:
        own: Sequence[Option] = importlib.import_module(self.module).OPTIONS
        return (*GLOBAL_OPTIONS, *own)

    @property
    def run(self) -> Run:
        run: Run = importlib.import_module(self.module).run
        return run

    @property
    def help(self) -> str:
        return help_text(self.name, self.options)


_HERE = "twisted_mq.cli.admin"

SUB_COMMANDS = (
    SubCommand("updateTopic", "make or alter a topic", f"{_HERE}.update_topic"),
    SubCommand("deleteTopic", "remove topic everywhere in cluster", f"{_HERE}.delete_topic"),
    SubCommand("topicRoute", "show which brokers hold topic", f"{_HERE}.topic_route"),
    SubCommand("topicStatus", "show per-queue min and max offsets", f"{_HERE}.topic_status"),
    SubCommand("brokerStatus", "show a broker's figures, and its slaves", f"{_HERE}.broker_status"),
    SubCommand("clusterList", "list brokers with throughput figures", f"{_HERE}.cluster_list"),
    SubCommand("topicList", "list every known topic", f"{_HERE}.topic_list"),
    SubCommand("haStatus", "show how far slaves are behind", f"{_HERE}.ha_status"),
)


def find_sub_command(name: str) -> SubCommand | None:
    """By name or alias, whatever the case."""
    wanted = name.lower()
    for command in SUB_COMMANDS:
        if wanted in (command.name.lower(), (command.alias or command.name).lower()):
            return command
    return None


def overview() -> str:
    """All subcommands with what they do."""
    rows = [f"   {command.name:<35} {command.text}" for command in SUB_COMMANDS]
    head = "The most commonly used mqadmin commands are:"
    example = "Example: mqadmin topicRoute -n 127.0.0.1:9876 -t Orders"
    return "\n".join(
        [head, *rows, "", "See 'mqadmin help <command>' for more information on a specific command.", example]
    )
