"""Runs of Apache's mqadmin as it recorded them: its requests with their answers, and what it printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet import defer

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import parse_command_line
from twisted_mq.cli.admin.registry import find_sub_command
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder

HERE = Path(__file__).parent
CAPTURES = HERE.parents[3] / "interop" / "captures" / "remoting"

SIGNATURE = {"AccessKey", "Signature"}
"""Fields that only the recorded tool sends: it ran with an account."""


def printed(command: str) -> list[str]:
    """The lines that Apache's tool printed for a command line."""
    sections = (HERE / "printed.txt").read_text().split("== ")[1:]
    for section in sections:
        head, _, text = section.partition("\n")
        if head == command:
            return text.rstrip("\n").split("\n")
    raise LookupError(command)


def fields_of(command: RemotingCommand) -> dict[str, str]:
    return {name: value for name, value in command.ext_fields.items() if name not in SIGNATURE}


def exchanges(capture: str, command: str) -> list[tuple[RemotingCommand, RemotingCommand]]:
    """Requests of one recorded mqadmin run, each with its answer."""
    frames = json.loads((CAPTURES / f"{capture}.json").read_text())
    commands = FrameDecoder().receive_data((CAPTURES / f"{capture}.frames").read_bytes())
    return [
        (commands[frame["answers"]], answer)
        for frame, answer in zip(frames, commands, strict=True)
        if frame["comment"].endswith(f"[mqadmin {command}]") and frame["answers"] is not None
    ]


class RecordedPeers:
    """Answers what Apache's servers answered in a recorded run; any other request is a test failure."""

    def __init__(self, known: list[tuple[RemotingCommand, RemotingCommand]]) -> None:
        self._known = known
        self.requests: list[tuple[str, int]] = []

    def invoke(self, address: str, command: RemotingCommand, timeout_seconds: float) -> defer.Deferred[RemotingCommand]:
        self.requests.append((address, int(command.code)))
        for request, answer in self._known:
            if request.code == command.code and fields_of(request) == command.ext_fields:
                return defer.succeed(answer)
        raise AssertionError(f"not in the recording: {command.code} {command.ext_fields}")


def context(client: Any, name_servers: list[str] | None = None) -> tuple[AdminContext, list[str], list[str]]:
    """A context over `client`, with the lists that take its output and its warnings."""
    lines: list[str] = []
    warnings: list[str] = []
    made = AdminContext(
        client=client,
        name_servers=name_servers or ["127.0.0.2:29876"],
        echo=lines.append,
        warn=warnings.append,
        now_ms=lambda: 1795217250000,
        sleep=lambda seconds: defer.Deferred(),
    )
    return made, lines, warnings


def run(client: Any, command: str) -> tuple[list[str], list[str]]:
    """Output lines and warnings of a command line. Raises what the subcommand raises."""
    name, *arguments = command.split()
    found = find_sub_command(name)
    assert found is not None
    admin, lines, warnings = context(client)
    work = defer.Deferred.fromCoroutine(found.run(admin, parse_command_line(found.all_options, arguments)))
    outcome: list[Any] = []
    work.addBoth(outcome.append)
    if outcome and hasattr(outcome[0], "raiseException"):
        outcome[0].raiseException()
    return "\n".join(lines).split("\n"), warnings
