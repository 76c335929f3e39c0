"""Implements `mq config`: checks configuration files of brokers and name servers, and begins new ones."""

from __future__ import annotations

import os
import sys

import attrs
import click

from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import json_line, print_table

DAEMONS = ("broker", "namesrv")
COLUMNS = ("line", "key", "effect", "remark")
DAEMON = click.option(
    "--daemon", type=click.Choice(DAEMONS), default="broker", show_default=True, help="Program that reads the file."
)


@click.group(short_help="Check a configuration file, or create one.")
def config() -> None:
    """Check a configuration file without starting a server, or create one. Files of Apache's brokers work too.

    \b
    Example:
      mq config init broker.conf
      mq config check broker.conf
    """


def _options_class(daemon: str) -> type:
    from twisted_mq.broker.options import BrokerOptions
    from twisted_mq.namesrv.options import NamesrvOptions

    return BrokerOptions if daemon == "broker" else NamesrvOptions


@config.command(short_help="Report the lines of a file that are wrong or have no effect.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@DAEMON
@click.option("--all", "everything", is_flag=True, help="Print correct lines too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each line of the file.")
def check(file: str, daemon: str, everything: bool, as_json: bool) -> None:
    """Show the lines of FILE that prevent the start, have no effect here, or have a value out of range.

    The exit code is 1 if there is such a line. A server refuses to start only for lines of the first kind, and warns about
    the others; with --strict it refuses those too.
    """
    from twisted_mq.config.checks import check_file
    from twisted_mq.config.findings import Effect

    found = check_file(_options_class(daemon), file)
    if as_json:
        for one in found:
            sys.stdout.write(json_line(attrs.asdict(one)))
    else:
        shown = [one for one in found if everything or one.effect is not Effect.USED]
        print_table(COLUMNS, map(attrs.astuple, shown))
    wrong = sum(one.effect.prevents_start for one in found)
    if wrong:
        raise CliError(f"{file}: {wrong} of {len(found)} keys prevent the start", "correct or remove them")
    idle = sum(not one.effect.is_as_written for one in found)
    if idle:
        raise CliError(
            f"{file}: {idle} of {len(found)} keys have no effect, or not the effect that is written",
            "correct or remove them",
        )
    if not as_json and sys.stdout.isatty():
        click.echo(f"{file}: a {daemon} starts with its {len(found)} keys")


@config.command(short_help="Create a configuration file.")
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@DAEMON
@click.option(
    "--all", "everything", is_flag=True, help="Write every key that has an effect, not only the most common ones."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def init(file: str | None, daemon: str, everything: bool, force: bool) -> None:
    """Write a configuration to FILE, or print it: keys with meaning and default, all commented out except bindAddress.

    \b
    Example:
      mq config init --daemon namesrv namesrv.conf
    """
    from twisted_mq.config.template import FIRST_KEYS, template

    text = template(_options_class(daemon), None if everything else FIRST_KEYS)
    if file is None:
        sys.stdout.write(text)
        return
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with open(os.open(file, flags, 0o640), "w", encoding="latin-1") as made:
            made.write(text)
    except FileExistsError:
        raise CliError(f"{file} already exists", "add --force to replace it") from None
    click.echo(f"{file} is written; `mq config check {file}` checks it")
