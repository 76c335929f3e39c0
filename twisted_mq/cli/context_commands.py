"""Implements `mq context`: named clusters, so that commands need no addresses, accounts and certificates."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from twisted_mq.cli.contexts import Contexts, Kept, checked_name, contexts_path, read_contexts, write_contexts
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import json_line, print_table
from twisted_mq.cli.server_options import setting_options
from twisted_mq.cli.servers import BY_NAME, HERE, SETTINGS, servers_from

COLUMNS = ("inUse", "name", "namesrv", "account", "tls")
HIDDEN = "(secret)"
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


@click.group(short_help="Manage named clusters: addresses, accounts and certificates.")
def context() -> None:
    """Save the settings of clusters under names. Select one with --context NAME, MQ_CONTEXT, or `mq context use`.

    Options override the context, and the context overrides the environment. The context in use applies only if neither
    --namesrv nor NAMESRV_ADDR names servers.

    \b
    Example:
      mq context add prod --namesrv "10.0.0.1:9876;10.0.0.2:9876" --access-key ada --tls-ca ca.pem
      mq context use prod
      mq lag
    """


def _read() -> Contexts:
    return read_contexts(contexts_path(os.environ), BY_NAME)


def _write(contexts: Contexts) -> None:
    write_contexts(contexts_path(os.environ), contexts)


@context.command(short_help="Save a cluster under a name.")
@click.argument("name")
@click.option("--use", is_flag=True, help="Use it from now on; the first context is always used.")
@click.option("--replace", is_flag=True, help="Replace an existing context.")
@setting_options
def add(name: str, use: bool, replace: bool, **given: Any) -> None:
    """Save a cluster under NAME. Asks for the secret key of an account if it is not given. Only you can read the file.

    \b
    Example:
      mq context add test --namesrv 127.0.0.1:9876
    """
    contexts = _read()
    if checked_name(name) in contexts.by_name and not replace:
        raise CliError(f"context {name} already exists", "add --replace to replace it")
    if given["access_key"] and given["secret_key"] is None and sys.stdin.isatty():
        given["secret_key"] = click.prompt(f"secret of {given['access_key']}", hide_input=True, err=True)
    kept = {one.name: given[one.attribute] for one in SETTINGS if given[one.attribute]}
    files = {one: os.path.abspath(os.path.expanduser(kept[one])) for one in kept if BY_NAME[one].is_file}
    kept = {"namesrv": HERE, **kept, **files}
    servers_from(kept).account()
    made = contexts.with_context(name, kept, use=use)
    _write(made)
    click.echo(f"context {name} is saved" + (" and in use" if made.in_use == name else f"; `mq context use {name}`"))


@context.command("list", short_help="List all contexts.")
@JSON
def list_contexts(as_json: bool) -> None:
    """List all contexts, and mark the one in use."""
    contexts = _read()
    rows = [
        (
            "*" if name == contexts.in_use else "",
            name,
            kept.get("namesrv"),
            kept.get("access-key") or kept.get("credentials"),
            "yes" if servers_from(kept).encrypted else "no",
        )
        for name, kept in contexts.by_name.items()
    ]
    if not as_json:
        print_table(COLUMNS, rows)
        return
    for mark, *values in rows:
        sys.stdout.write(json_line({"inUse": bool(mark), **dict(zip(COLUMNS[1:], values, strict=True))}))


@context.command(short_help="Select the context to use.")
@click.argument("name", required=False)
@click.option("--none", "nobody", is_flag=True, help="Use no context.")
def use(name: str | None, nobody: bool) -> None:
    """Use the servers of NAME for commands that name no servers."""
    if nobody == (name is not None):
        raise click.UsageError("Give the name of a context, or --none.")
    contexts = _read()
    if name is not None:
        contexts.named(name)
    _write(Contexts(name, contexts.by_name))
    click.echo(f"context {name} is in use" if name else "no context is in use")


@context.command(short_help="Show the settings of a context.")
@click.argument("name", required=False)
@JSON
def show(name: str | None, as_json: bool) -> None:
    """Show the settings of NAME, or of the context in use. Secrets are hidden."""
    contexts = _read()
    if name is None and contexts.in_use is None:
        raise CliError("no context is in use", "`mq context list` shows all contexts")
    shown = _shown(contexts.named(name or str(contexts.in_use)))
    if as_json:
        sys.stdout.write(json_line({"name": name or contexts.in_use, **shown}))
    else:
        print_table(("setting", "value"), shown.items())


def _shown(kept: Kept) -> dict[str, str | bool]:
    return {name: HIDDEN if BY_NAME[name].secret else value for name, value in kept.items()}


@context.command(short_help="Delete a context.")
@click.argument("name")
def remove(name: str) -> None:
    """Delete NAME and its secrets."""
    _write(_read().without(name))
    click.echo(f"context {name} is deleted")
