"""Implements `mq quickstart`: the first two minutes, by real commands: servers, a message, its consumer, its bytes, the
console.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs
import click

from twisted_mq.cli.errors import CliError
from twisted_mq.extras import MissingExtra, require

MQ = (sys.executable, "-c", "from twisted_mq.cli.start import main; main()")
"""`mq` of this installation, even if it is not on the path."""
STEP_SECONDS = 120.0
STOP_SECONDS = 30.0
TOPIC, GROUP, KEY = "Orders", "stock", "order-1"
BODY = "two chairs"


@attrs.frozen
class QuickstartStep:
    """A command, with its title and an explanation."""

    title: str
    text: str
    words: tuple[str, ...]


@attrs.frozen
class QuickstartServers:
    """The addresses of the servers, and their store."""

    name_server: str
    store: str
    console: str | None


@click.command(short_help="Try it in two minutes: start, send, consume, look.")
@click.option(
    "--no-pause", is_flag=True, help="Do not wait for Enter between the steps (the default without a terminal)."
)
def quickstart(no_pause: bool) -> None:
    """Try RocketMQ in two minutes on this machine.

    It starts a name server and a broker on free ports, sends a message, consumes it, shows it in the store, and
    opens the console. You see each command as you would type it, and its output. At the end all is stopped and removed.

    \b
    Example:
      mq quickstart
    """
    pause = sys.stdin.isatty() and sys.stdout.isatty() and not no_pause
    walk(pause)


def walk(pause: bool) -> None:
    """Run all steps, one after the other. Raises CliError if a command fails, MissingExtra."""
    require("mq quickstart", "broker", "numpy", "sortedcontainers", "sqlglot")
    with tempfile.TemporaryDirectory(prefix="mq-quickstart-") as folder:
        click.echo("This tour takes two minutes. Everything runs on this machine, and is removed at the end.\n")
        words, missing = _up(os.path.join(folder, "store"))
        _show(
            QuickstartStep(
                "1. Start a name server and a broker", "Clients ask the name server where brokers are.", words
            )
        )
        with _running(words) as place:
            click.echo(f"  name server {place.name_server}, store {place.store}\n")
            for step in steps(place):
                _wait(pause)
                _show(step)
                click.echo(_indented(_run(step.words)))
            _wait(pause)
            _console(place, missing)
            _wait(pause)
        _goodbye()


def steps(place: QuickstartServers) -> Iterator[QuickstartStep]:
    """Yield the commands between the start and the console."""
    at = ("--namesrv", place.name_server)
    yield QuickstartStep(
        "2. Send a message",
        "The first message creates the topic. Consumers select messages by tag; you can find a message by its key.",
        ("send", TOPIC, BODY, "--tags", "new", "--keys", KEY, *at),
    )
    yield QuickstartStep(
        "3. Consume it",
        "The members of a group share a topic's messages; each group gets all of them. The broker stores how far the group is.",
        ("consume", TOPIC, "--group", GROUP, "--count", "1", *at),
    )
    yield QuickstartStep(
        "4. See how far the group is",
        "Lag is the number of messages that the group has not consumed yet.",
        ("lag", GROUP, *at),
    )
    yield QuickstartStep(
        "5. Look into the store",
        "Messages are stored one after the other in a log on disk. The command reads the files, without the broker.",
        ("store", "dump", place.store, "--topic", TOPIC, "--json"),
    )


def _up(store: str) -> tuple[tuple[str, ...], MissingExtra | None]:
    """Return the command that starts the servers, with the console if its packages are installed; and what is missing for it."""
    words = ("up", "--store", store, "--port", "0", "--grpc-port", "-1", "--json")
    try:
        require("the console", "console")
    except MissingExtra as error:
        return words, error
    return (*words, "--console-port", "0"), None


@contextmanager
def _running(words: Sequence[str]) -> Iterator[QuickstartServers]:
    """Run the servers until the block ends. Raises CliError if they do not start."""
    server = subprocess.Popen([*MQ, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        lines = [server.stdout.readline() for _ in range(2 if "--console-port" in words else 1)]
        if not all(lines):
            _, told = server.communicate(timeout=STOP_SECONDS)
            raise CliError(f"`{_typed(words)}` ended: {_reason(told)}")
        facts = {name: value for line in lines for name, value in json.loads(line).items()}
        yield QuickstartServers(facts["namesrv"], facts["store_path"], facts.get("console"))
    finally:
        server.terminate()
        try:
            server.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def _run(words: Sequence[str]) -> str:
    """Return the output of a command. Raises CliError if it fails."""
    done = subprocess.run([*MQ, *words], capture_output=True, text=True, timeout=STEP_SECONDS)
    if done.returncode:
        raise CliError(f"`{_typed(words)}` failed: {_reason(done.stderr or done.stdout)}")
    return done.stdout


def _reason(told: str) -> str:
    """Return the last line: commands end with one that says what to do."""
    return told.strip().rpartition("\n")[2]


def _show(step: QuickstartStep) -> None:
    click.secho(step.title, bold=True)
    click.echo(f"{step.text}\n")
    click.echo(f"  $ {_typed(step.words)}")


def _typed(words: Sequence[str]) -> str:
    return shlex.join(["mq", *words])


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _wait(pause: bool) -> None:
    if pause:
        click.prompt("Press Enter to continue", default="", show_default=False, prompt_suffix=" ... ")


def _console(place: QuickstartServers, missing: MissingExtra | None) -> None:
    click.secho("6. Open the console", bold=True)
    if place.console is None:
        click.echo(f"It shows topics, groups and messages in a browser. Here, {missing}\n")
        return
    click.echo(f"It shows topics, groups and messages in a browser, while this tour waits:\n\n  {place.console}\n")


def _goodbye() -> None:
    click.secho("Done. The servers are stopped and the store is removed.", bold=True)
    click.echo(
        "\nNext:\n"
        "  mq up                         servers that keep their store\n"
        "  mq --help                     all commands\n"
        "  from twisted_mq.aio import Message, Producer, PushConsumer\n"
        "                                the same from a program: docs/tutorial/first-messages.md"
    )
