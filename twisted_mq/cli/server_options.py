"""Defines the options of every command of `mq` that asks servers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from twisted_mq.cli.servers import CONTEXT_VARIABLE, HERE, SETTINGS, Servers, ServerSetting, servers_of

F = TypeVar("F", bound=Callable[..., Any])

_CONTEXT = click.option("--context", "context", help=f"Use this context of `mq context`; or {CONTEXT_VARIABLE}.")


def _option(setting: ServerSetting) -> Callable[[F], F]:
    help_text = f"{setting.help.rstrip('.')}; or {setting.variable}." if "[" not in setting.help else setting.help
    if setting.is_switch:
        return click.option(setting.flag, setting.attribute, is_flag=True, default=None, help=help_text)
    return click.option(setting.flag, setting.attribute, help=help_text)


def setting_options(command: F) -> F:
    """Add an option for each setting; the function gets their values, None if not given."""
    return _decorated(command, [_option(setting) for setting in SETTINGS])


def reaches_servers(command: F) -> F:
    """Add all of these and --context; the function gets the result as `servers`."""

    @functools.wraps(command)
    def with_servers(context: str | None, **arguments: Any) -> Any:
        return command(servers=servers_given(arguments, context), **arguments)

    return _decorated(with_servers, [*(_option(setting) for setting in SETTINGS), _CONTEXT])  # type: ignore[return-value]


def servers_given(arguments: dict[str, Any], context: str | None) -> Servers:
    """Return the cluster of a command's arguments, which are removed. Without any it is the one on this machine."""
    given = {setting.name: arguments.pop(setting.attribute) for setting in SETTINGS}
    return servers_of(given, context) or servers_of({**given, "namesrv": HERE}, context) or Servers()


def _decorated(command: F, options: Iterable[Callable[[Any], Any]]) -> F:
    found: Any = command
    for option in reversed(list(options)):
        found = option(found)
    return found  # type: ignore[no-any-return]
