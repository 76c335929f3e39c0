"""Command lines of `mq` and `mqadmin` from their own options and odd values: exit code 0, 1 or 2, and a line that says why."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock

from tests.fuzz.cases import ONLY, cases, dice
from tests.support.store_load import START_MS, small_config
from twisted_mq.cli import mq as mq_module
from twisted_mq.cli import mqadmin
from twisted_mq.cli import run as run_module
from twisted_mq.cli.admin.registry import sub_commands
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.mq import COMMANDS
from twisted_mq.cli.spark import frame
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.message_store import FileMessageStore

LEFT_OUT = ("demo",)
"""Commands that are skipped: `demo` has no options, and starts processes."""
ODD = (
    "", " ", "-", "--", "---", "=", "-x", "--no-such", "0", "-1", "1", "\u00b2", "\u0663", "9" * 30, "9" * 5000, "1e9", "nan",
    "inf", "a:b", ":", "1:2", "2:1", "\u00b2:1", "2026-11-21T08:00:00", "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59", "Orders", "a/b", "%", "\x01", "\udc80", "\u4e2d" * 300, "x" * 5000, "k=v", "=v",
    "127.0.0.1:1", "127.0.0.1:99999", ";;", "[::1]:1", "no such host:1", "*", "A || B", ".", "..", "nowhere", "~", "true", "all",
)  # fmt: skip
"""Paths, all in the test's own folder, because command lines write to them."""
FINE = {0, 1, 2}
SAID = ("not exist", "problem", "first difference")
"""Words in the output that explain an exit code other than 0."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place where command lines run: a home with a store, a file, and no network."""
    home = tmp_path / "home"
    store = FileMessageStore(small_config(home / "store"), lambda: START_MS)
    store.start()
    for number in range(5):
        store.put_message(InnerMessage("T", 0, b"%d" % number, b"", {}, 0, born_timestamp=START_MS))
    store.close()
    (home / "file").write_bytes(b"line\n\xff\n")
    monkeypatch.chdir(home)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setattr(run_module, "run_under_reactor", without_network)
    monkeypatch.setattr(mqadmin, "run_under_reactor", as_far_as_the_network)
    monkeypatch.setattr(frame, "session", without_spark)
    monkeypatch.setattr("os.umask", lambda mask: 0)
    return home


def without_network(main: object) -> None:
    """Run a command of `mq` without a network."""
    raise CliError("there is no network here")


def without_spark(cores: object) -> None:
    """Run a job of `mq spark` without Spark."""
    raise CliError("there is no Spark here")


def as_far_as_the_network(main: Callable[[Any], Coroutine[Deferred[object], object, None]]) -> None:
    """Run a command up to its connections, which are never made."""
    outcome: list[object] = []
    running = Deferred.fromCoroutine(main(MemoryReactorClock()))
    running.addErrback(outcome.append)
    running.cancel()
    for failure in outcome:
        if failure.type.__name__ != "CancelledError":  # type: ignore[attr-defined]
            failure.raiseException()  # type: ignore[attr-defined]


def command_at(random: Random) -> tuple[list[str], click.Command]:
    """The words that lead to a command, and it."""
    words, command = [], mq_module.mq
    while isinstance(command, click.Group):
        context = click.Context(command)
        words.append(random.choice([name for name in command.list_commands(context) if name not in LEFT_OUT]))
        command = command.get_command(context, words[-1])
        assert command is not None
    return words, command


def mq_line(random: Random) -> list[str]:
    words, command = command_at(random)
    for parameter in command.params:
        if random.random() < (0.9 if isinstance(parameter, click.Argument) else 0.25):
            words += given(random, parameter)
    return disturbed(random, words)


def given(random: Random, parameter: click.Parameter) -> list[str]:
    """A parameter with a value that it may have, or an odd one; `--apply` changes the store of the test alone."""
    value = random.choice((*ODD, "store", "store", "store", "file"))
    if isinstance(parameter, click.Argument):
        return ["store" if "directory" in str(parameter.name) and random.random() < 0.7 else value]
    name = random.choice(parameter.opts)
    return [name] if getattr(parameter, "is_flag", False) else [name, value]


def admin_line(random: Random) -> list[str]:
    command = random.choice(sub_commands())
    words = [random.choice((command.name, command.alias or command.name, command.name.upper(), "help"))]
    for option in command.all_options[1:]:
        if random.random() < (0.9 if option.required or option.short == "n" else 0.3):
            words.append(random.choice((option.spelled, f"--{option.long}", f"--{option.long[:3]}")))
            words += [random.choice(ODD)] * option.has_arg
    return disturbed(random, words)


def disturbed(random: Random, words: list[str]) -> list[str]:
    """Sometimes a word more, a word less, or a word elsewhere."""
    words = list(words)
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        if words and random.random() < 0.5:
            del words[random.randrange(len(words))]
        words.insert(random.randrange(len(words) + 1), random.choice(ODD))
    return words


def outcome_of(program: Callable[[], None], words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Exit code, and what was printed on streams as Python opens them."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    monkeypatch.setattr(sys, "argv", ["program", *words])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    code: object = 0
    with Path("file").open(errors="surrogateescape") as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        try:
            program()
        except SystemExit as end:
            code = end.code
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    return code if isinstance(code, int) else 0, *texts


@pytest.mark.parametrize(
    ("program", "line"), [(mq_module.main, mq_line), (mqadmin.main, admin_line)], ids=["mq", "mqadmin"]
)
def test_command_line_ends_with_a_known_code_and_says_why(
    program: Callable[[], None],
    line: Callable[[Random], list[str]],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes = set()
    for case in cases(0.1):
        with dice(case) as random:
            words = line(random)
            code, out, err = outcome_of(program, words, monkeypatch)
            codes.add(code)
            assert code in FINE and "Traceback" not in err, words
            assert code == 0 or err.strip() or any(one in out for one in SAID), words
    assert ONLY is not None or {0, 1} <= codes


def test_every_command_is_reached() -> None:
    reached = {command_at(Random(number))[0][0] for number in range(300)}
    assert reached == set(COMMANDS) - set(LEFT_OUT)
