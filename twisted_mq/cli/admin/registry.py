"""Holds the table of subcommands, in the order of Apache's tool. sub_commands.json has the names, aliases, options.

Each subcommand is a function of its name, in the module that the table names.
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

JSON = Option("", "json", "print one JSON object per line instead of text", has_arg=False, ours=True)
YES = Option("", "yes", "do not ask for confirmation", has_arg=False, ours=True)
DRY_RUN = Option("", "dry-run", "show what would change, without changing it", has_arg=False, ours=True)

PREVIEWED = ("resetOffsetByTime", "skipAccumulatedMessage", "cloneGroupOffset")
"""Subcommands that have `--dry-run`."""


class SubCommand(msgspec.Struct, frozen=True):
    """A subcommand. Without `module` it is not served; `needs` names the part of Apache's that it would need.

    `danger` says what it destroys: on a terminal it asks first.
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
        """Return Apache's options, its own before general ones of the same letter, and then ours."""
        own = {option.key for option in self.options}
        general = (option for option in GLOBAL_OPTIONS if option.key not in own)
        return (*general, *self.options, *self.extras)

    @property
    def extras(self) -> tuple[Option, ...]:
        """Return the options that Apache's tool does not have."""
        if self.module is None:
            return ()
        previewed = (DRY_RUN,) if self.name in PREVIEWED else ()
        return (JSON, *((YES,) if self.danger else ()), *previewed)

    @property
    def run(self) -> Run:
        """Return its function; the module is loaded now."""
        assert self.module is not None
        module = importlib.import_module(f"{_HERE}.{self.module}")
        run: Run = getattr(module, _BEFORE_CAPITAL.sub("_", self.name).lower())
        return run

    @property
    def help(self) -> str:
        return help_text(self.name, self.all_options)

    @property
    def refusal(self) -> str:
        """Return why it cannot be run here."""
        if self.needs is None:
            return "this command is not implemented; use Apache's mqadmin"
        return f"this command needs {self.needs}, which this project does not have; use Apache's mqadmin with Apache's servers"


@functools.cache
def sub_commands() -> tuple[SubCommand, ...]:
    """Return all of Apache's subcommands, served or not."""
    data = resources.files(_HERE).joinpath("sub_commands.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[SubCommand, ...])


def served() -> list[SubCommand]:
    """Return the served subcommands."""
    return [command for command in sub_commands() if command.module is not None]


def find_sub_command(name: str) -> SubCommand | None:
    """Return a subcommand by name or alias, in any case."""
    wanted = name.lower()
    for command in sub_commands():
        if wanted in (command.name.lower(), (command.alias or command.name).lower()):
            return command
    return None


def similar_names(name: str) -> list[str]:
    """Return the most similar names, best first, three at most."""
    names = {command.name.lower(): command.name for command in sub_commands()}
    return [names[found] for found in difflib.get_close_matches(name.lower(), names, 3, 0.7)]


def overview() -> str:
    """Return all subcommands with their descriptions; those that are not served come last."""
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
