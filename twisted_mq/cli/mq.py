"""Implements `mq`: the group of commands. Each command is a module that is loaded when it is used."""

from __future__ import annotations

import difflib
import importlib
import sys

import click

from twisted_mq.cli.errors import end_with_closed_pipe, escape_odd_output, fail, is_expected
from twisted_mq.cli.run import Interrupted
from twisted_mq.version import version_line

COMMANDS = {
    "quickstart": "twisted_mq.cli.quickstart:quickstart",
    "up": "twisted_mq.cli.up:up",
    "send": "twisted_mq.cli.send:send",
    "consume": "twisted_mq.cli.consume:consume",
    "peek": "twisted_mq.cli.peek:peek",
    "tail": "twisted_mq.cli.peek:tail",
    "lag": "twisted_mq.cli.lag:lag",
    "dlq": "twisted_mq.cli.dlq:dlq",
    "replay": "twisted_mq.cli.replay:replay",
    "top": "twisted_mq.cli.top:top",
    "bench": "twisted_mq.cli.bench.command:bench",
    "doctor": "twisted_mq.cli.doctor.command:doctor",
    "context": "twisted_mq.cli.context_commands:context",
    "console": "twisted_mq.cli.console:console",
    "config": "twisted_mq.cli.config_commands:config",
    "frames": "twisted_mq.cli.frames:frames",
    "record": "twisted_mq.cli.record:record",
    "store": "twisted_mq.cli.store:store",
    "backup": "twisted_mq.cli.backup:backup",
    "restore": "twisted_mq.cli.backup:restore",
    "migrate": "twisted_mq.cli.migrate:migrate",
    "order": "twisted_mq.cli.order:order",
    "spark": "twisted_mq.cli.spark.commands:spark",
    "admin": "twisted_mq.cli.admin_command:admin",
    "demo": "twisted_mq.cli.demo:demo",
    "completion": "twisted_mq.cli.completion:completion",
}
"""Name -> module:attribute, in the order of the help text."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class LazyGroup(click.Group):
    """A group whose commands are imported by name; their modules import no reactor and no numpy at their top."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does. Raises click.UsageError with a similar name."""
        if args[0] in COMMANDS or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        similar = difflib.get_close_matches(args[0], COMMANDS, 2, LIKELY)
        meant = f" (did you mean {' or '.join(similar)}?)" if similar else ""
        raise click.UsageError(f"No such command {args[0]!r}{meant}.", ctx)


LIKELY = 0.6
"""The least similarity of a name that is proposed."""


def print_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print one line, and exit."""
    if wanted:
        click.echo(version_line("mq"))
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version, help="Print the version."
)
def mq() -> None:
    """Apache RocketMQ in Python: run it, send, consume, and look into its frames and files.

    \b
    Example:
      mq quickstart                      a tour of two minutes
      mq up                              a name server and a broker on this machine
      mq send Orders "hello" --tags new  in another terminal
      mq consume Orders --group audit
    """


def main() -> None:
    """Run `mq`: every failure is one line on standard error that says what to do next."""
    escape_odd_output()
    try:
        mq.main(prog_name="mq", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "mq"
        fail("mq", f"{error.format_message().rstrip('.')}; see `{path} --help`")
    except click.ClickException as error:
        fail("mq", error.format_message())
    except (click.Abort, Interrupted, KeyboardInterrupt):
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        end_with_closed_pipe()
    except Exception as error:
        if not is_expected(error):
            raise
        fail("mq", error)
