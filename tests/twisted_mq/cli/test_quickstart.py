"""The walk through the first two minutes, by what it prints."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from twisted_mq.cli import quickstart
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.mq import mq
from twisted_mq.cli.quickstart import QuickstartServers, steps
from twisted_mq.extras import MissingExtra


def printed(text: str, title: str) -> list[str]:
    """The lines of a step's command that stand below its title."""
    part = text[text.index(title) :].split("\n\n")[1]
    return [line.removeprefix("  ") for line in part.splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the directory of the tour's store."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_each_step_does_what_it_says(folder: Path) -> None:
    done = CliRunner().invoke(mq, ["quickstart"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    text = done.stdout
    sent = printed(text, "2. Send")
    assert sent[0].startswith("$ mq send Orders 'two chairs' --tags new --keys order-1 --namesrv 127.0.0.1:")
    status, msg_id = sent[2].split("\t")[:2]
    assert status == "SEND_OK"
    consumed = dict(zip(*(line.split("\t") for line in printed(text, "3. Consume")[1:3]), strict=True))
    assert (consumed["msgId"], consumed["body"], consumed["tags"]) == (msg_id, "two chairs", "new")
    ends = [line.split("\t")[3:6] for line in printed(text, "4. See")[2:]]
    assert sorted(ends) == [["0", "0", "0"]] * 3 + [["1", "1", "0"]]
    (stored,) = map(json.loads, printed(text, "5. Look")[1:])
    assert (stored["topic"], stored["properties"]["UNIQ_KEY"], stored["bodyLength"]) == ("Orders", msg_id, 10)
    assert re.search(r"^  http://127\.0\.0\.1:\d+/login#\S+$", text, re.MULTILINE)
    assert "The servers are stopped and the store is removed." in text
    assert list(folder.iterdir()) == []


def test_each_command_has_the_options_that_are_shown(tmp_path: Path) -> None:
    for step in steps(QuickstartServers("127.0.0.1:9876", str(tmp_path), None)):
        command: click.Command = mq
        words = list(step.words)
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None
            command = found
        command.make_context("mq", words)


def test_without_the_consoles_packages_the_walk_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require(part: str, extra: str, *only: str) -> None:
        if extra == "console":
            raise MissingExtra(f'{part} needs klein: pip install "rocketmq-twisted[console]"')

    monkeypatch.setattr(quickstart, "require", require)
    monkeypatch.setattr(quickstart, "steps", lambda place: iter(()))
    text = CliRunner().invoke(mq, ["quickstart"]).stdout
    assert 'Here, the console needs klein: pip install "rocketmq-twisted[console]"' in text
    assert "--console-port" not in text


def test_a_command_that_fails_ends_the_walk_with_its_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = quickstart.QuickstartStep("2.", "", ("send", "no good topic", "x"))
    monkeypatch.setattr(quickstart, "steps", lambda place: iter([wrong]))
    done = CliRunner().invoke(mq, ["quickstart"])
    assert isinstance(done.exception, CliError)
    assert str(done.exception).startswith(f"`mq {shlex.join(wrong.words)}` failed: mq: ")
    assert list(folder.iterdir()) == []


def test_servers_that_do_not_start_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.close(os.open(folder / "file", os.O_CREAT))
    monkeypatch.setattr(quickstart, "_up", lambda store: (("up", "--store", str(folder / "file"), "--json"), None))
    done = CliRunner().invoke(mq, ["quickstart"])
    assert isinstance(done.exception, CliError)
    assert " ended: mq: " in str(done.exception)
