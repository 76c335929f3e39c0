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
    "--daemon", type=click.Choice(DAEMONS), default="broker", show_default=True, help="Whose configuration it is."
)


@click.group(short_help="Configuration files: check one, begin one.")
def config() -> None:
    """Check a configuration file without starting anything, or begin a new one. Files of Apache's brokers are fine.

    \b
    Example:
      mq config init broker.conf
      mq config check broker.conf
    """


def _options_class(daemon: str) -> type:
    from twisted_mq.broker.options import BrokerOptions
    from twisted_mq.namesrv.options import NamesrvOptions

    return BrokerOptions if daemon == "broker" else NamesrvOptions


@config.command(short_help="What each line of a file does here, and what is wrong with it.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@DAEMON
@click.option("--all", "everything", is_flag=True, help="Also the lines that are well.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line of the file, also of those that are well."
)
def check(file: str, daemon: str, everything: bool, as_json: bool) -> None:
    """Name the lines of FILE that prevent the start, do nothing here, or hold a value that is clamped.

    The exit code is 1 where there is such a line. A daemon starts with all but the first kind, and warns; with --strict it
    refuses them as well.
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
        raise CliError(f"{file}: {wrong} of {len(found)} keys prevent the start", "mend or remove them")
    idle = sum(not one.effect.is_as_written for one in found)
    if idle:
        raise CliError(f"{file}: {idle} of {len(found)} keys do not do what is written", "mend or remove them")
    if not as_json and sys.stdout.isatty():
        click.echo(f"{file}: a {daemon} starts with its {len(found)} keys")


@config.command(short_help="A file to begin with.")
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@DAEMON
@click.option(
    "--all", "everything", is_flag=True, help="Every key that has an effect, not only those that most files set."
)
@click.option("--force", is_flag=True, help="Also where FILE is there.")
def init(file: str | None, daemon: str, everything: bool, force: bool) -> None:
    """Write a configuration to FILE, or print it: each key with what it means and its default, all but bindAddress behind a #.

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
        raise CliError(f"{file} is there", "--force takes its place") from None
    click.echo(f"{file} is written; `mq config check {file}` checks it")
