"""Implements `mq completion SHELL`: a script that completes commands and options."""

from __future__ import annotations

import click

from twisted_mq.cli.errors import CliError

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print a completion script for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and their values in SHELL.

    \b
    Examples:
      source <(mq completion bash)
      mq completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise CliError(f"shell {shell} is not supported; use bash, zsh or fish")
    click.echo(kind(context.find_root().command, {}, "mq", "_MQ_COMPLETE").source())
