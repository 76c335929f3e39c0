"""Implements `mqadmin`: Apache's admin tool. Parses the command line as Apache's does, then runs one subcommand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twisted_mq.admin.errors import AdminError
from twisted_mq.cli.admin.command_line import CommandLine, UsageError, parse_command_line
from twisted_mq.cli.admin.completion import print_completion
from twisted_mq.cli.admin.registry import SubCommand, find_sub_command, overview, similar_names
from twisted_mq.cli.errors import CliError, end_with_closed_pipe, escape_odd_output, harmless, report
from twisted_mq.cli.run import Interrupted, run_under_reactor
from twisted_mq.cli.servers import Servers, servers_of
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RocketMQError
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.version import version_line

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime


NEXT_STEPS: dict[int, tuple[str, ...]] = {
    ResponseCode.TOPIC_NOT_EXIST: ("`mqadmin topicList` lists the topics",),
    ResponseCode.NO_PERMISSION: ("check brokerPermission and the access rules of that broker",),
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: ("this version of the server does not support the request",),
}
"""The advice for a refusal whose remark has none."""

HELP = frozenset({"-h", "--help", "-help"})

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `mqadmin`; exit with code 0, or 1 after one line on standard error."""
    escape_odd_output()
    try:
        code = run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        end_with_closed_pipe()
    raise SystemExit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; return the exit code."""
    if not arguments or (arguments[0] in {*HELP, "help"} and len(arguments) == 1):
        print(overview())
        return 0
    if arguments[0] == "--version":
        print(version_line("mqadmin"))
        return 0
    if arguments[0] == "completion":
        return print_completion(arguments[1:])
    wants_help = arguments[0] == "help" and len(arguments) == 2
    name = arguments[1] if wants_help else arguments[0]
    command = find_sub_command(name)
    if command is None:
        return _unknown(name)
    if wants_help:
        print(command.help)
        return 0
    return _run_command(command, arguments[1:])


def _unknown(name: str) -> int:
    print(f"The sub command {name} not exist.")
    similar = similar_names(name)
    if similar:
        print(f"did you mean {' or '.join(similar)}?", file=sys.stderr)
    return 1


def _run_command(command: SubCommand, arguments: Sequence[str]) -> int:
    if command.module is None and not HELP.intersection(arguments):
        report(f"mqadmin {command.name}", command.refusal)
        return 1
    try:
        line = parse_command_line(command.all_options, arguments)
        if "h" in line:
            print(command.help)
            return 0
        servers = name_servers(line)
        if not _may_go_on(command, line):
            return 1
        run_under_reactor(lambda reactor: _execute(reactor, command, line, servers))
    except UsageError as error:
        print(error, file=sys.stderr)
        print(command.help)
        return 1
    except (AdminError, RocketMQError) as error:
        report(f"mqadmin {command.name}", with_next_step(error))
        return 1
    except Interrupted:
        return INTERRUPTED
    return 0


def _may_go_on(command: SubCommand, line: CommandLine) -> bool:
    """Return True if a destructive subcommand is confirmed: it asks only on a terminal, so that scripts are not stopped."""
    if command.danger is None or "yes" in line or "dry-run" in line or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    try:
        answer = input(f"{command.name} {command.danger}. Continue? [y/N] ")
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")


def with_next_step(error: Exception) -> str:
    """Return what went wrong, without links in the peer's remark, and what to look at."""
    lines = [line for line in str(error).splitlines() if "http" not in line]
    if isinstance(error, BrokerError):
        return "; ".join([" ".join(lines), *NEXT_STEPS.get(error.response_code, ())])
    if isinstance(error, RemotingError):
        return f"{' '.join(lines)}; `mqadmin clusterList` lists the running brokers"
    return " ".join(lines)


def name_servers(line: CommandLine) -> Servers:
    """Return the cluster of -n, the environment or a context. Raises CliError without any."""
    servers = servers_of({"namesrv": line.value("n") or None})
    if servers is None:
        raise CliError("no name server is given", "add -n host:port or set NAMESRV_ADDR; `mq up` starts one")
    return servers


async def _execute(reactor: IReactorTime, command: SubCommand, line: CommandLine, servers: Servers) -> None:
    def warn(text: str) -> None:
        report(f"mqadmin {command.name}", text)

    shown: Callable[[str], str] = harmless if sys.stdout.isatty() else str
    await execute(reactor, command, line, servers, lambda text: print(shown(text), flush=True), warn)


async def execute(
    reactor: IReactorTime,
    command: SubCommand,
    line: CommandLine,
    servers: Servers,
    echo: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Run a subcommand with connections of its own, which are closed at the end."""
    from twisted_mq.cli.admin.connected import connected

    with connected(reactor, servers, echo, warn, as_json="json" in line) as admin:
        await command.run(admin, line)
