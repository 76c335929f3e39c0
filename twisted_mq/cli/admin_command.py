"""`mq admin`: the same as `mqadmin`."""

from __future__ import annotations

import click


def _names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the subcommands that begin with the text."""
    from twisted_mq.cli.admin.registry import served

    return [command.name for command in served() if command.name.startswith(begun)]


@click.command(
    short_help="Run a command of mqadmin, the admin tool.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=_names)
def admin(arguments: tuple[str, ...]) -> None:
    """Run a subcommand of Apache's admin tool; without one, list them.

    \b
    Example:
      mq admin topicList -n 127.0.0.1:9876
    """
    from twisted_mq.cli.mqadmin import run

    raise SystemExit(run(arguments))
