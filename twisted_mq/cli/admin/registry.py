"""The table of subcommands, in the order of Apache's tool. The facts lie in sub_commands.json: names, aliases, options.

Each is a function named as the subcommand, in the module that the table names.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Awaitable, Callable
from importlib import resources

import msgspec

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import GLOBAL_OPTIONS, CommandLine, Option, help_text

Run = Callable[[AdminContext, CommandLine], Awaitable[None]]

_HERE = "twisted_mq.cli.admin"
_BEFORE_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")

JSON = Option("", "json", "one JSON object a line instead of text", has_arg=False, ours=True)
YES = Option("", "yes", "do not ask, also on a terminal", has_arg=False, ours=True)
DRY_RUN = Option(
    "", "dry-run", "show what would change, with counts and times, and change nothing", has_arg=False, ours=True
)

PREVIEWED = ("resetOffsetByTime", "skipAccumulatedMessage", "cloneGroupOffset")
"""Subcommands that know `--dry-run`."""


class SubCommand(msgspec.Struct, frozen=True):
    """One subcommand. Without `module` it isn't served; `needs` says which part of Apache's it would need.

    `danger` is what it destroys: on a terminal it asks first.
    """

    name: str
    text: str
    options: tuple[Option, ...]
    alias: str | None = None
    module: str | None = None
    needs: str | None = None
    danger: str | None = None

    @property
    def all_options(self) -> tuple[Option, ...]:
        """Apache's, where its own option comes before a general one of the same letter, and then ours."""
        own = {option.key for option in self.options}
        general = (option for option in GLOBAL_OPTIONS if option.key not in own)
        return (*general, *self.options, *self.extras)

    @property
    def extras(self) -> tuple[Option, ...]:
        """The options that Apache's tool has not."""
        if self.module is None:
            return ()
        previewed = (DRY_RUN,) if self.name in PREVIEWED else ()
        return (JSON, *((YES,) if self.danger else ()), *previewed)

    @property
    def run(self) -> Run:
        """Its function; the module is loaded now."""
        assert self.module is not None
        module = importlib.import_module(f"{_HERE}.{self.module}")
        run: Run = getattr(module, _BEFORE_CAPITAL.sub("_", self.name).lower())
        return run

    @property
    def help(self) -> str:
        return help_text(self.name, self.all_options)

    @property
    def refusal(self) -> str:
        """Why it can't be run here."""
        if self.needs is None:
            return "Apache's mqadmin has this, ours not yet"
        return f"it needs {self.needs}, which this project does not have; Apache's mqadmin has it, for Apache's servers"


@functools.cache
def sub_commands() -> tuple[SubCommand, ...]:
    """All of Apache's, served or not."""
    data = resources.files(_HERE).joinpath("sub_commands.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[SubCommand, ...])


def served() -> list[SubCommand]:
    """Those that work."""
    return [command for command in sub_commands() if command.module is not None]


def find_sub_command(name: str) -> SubCommand | None:
    """By name or alias, whatever the case."""
    wanted = name.lower()
    for command in sub_commands():
        if wanted in (command.name.lower(), (command.alias or command.name).lower()):
            return command
    return None


def similar_names(name: str) -> list[str]:
    """What somebody may have meant, the likeliest first, three at most."""
    names = {command.name.lower(): command.name for command in sub_commands()}
    return [names[found] for found in difflib.get_close_matches(name.lower(), names, 3, 0.7)]


def overview() -> str:
    """All subcommands with what they do; those that aren't served stand at the end."""
    rows = [f"   {command.name:<35} {command.text}" for command in served()]
    others = [f"   {command.name:<35} {command.refusal}" for command in sub_commands() if command.module is None]
    return "\n".join(
        [
            "The most commonly used mqadmin commands are:",
            *rows,
            "",
            "Apache's mqadmin also has:",
            *others,
            "",
            "See 'mqadmin help <command>' for more information on a specific command.",
            "Example: mqadmin topicRoute -n 127.0.0.1:9876 -t Orders",
        ]
    )
