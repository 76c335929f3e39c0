"""A type checker reads the types of the installed wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.packaging.daemons import environment

PROGRAM = """\
from twisted.internet.interfaces import IReactorTime
from twisted_mq.client import Message, Producer
async def hello(reactor: IReactorTime) -> int:
    result = await Producer(reactor, group="g", namesrv="127.0.0.1:9876").send(Message("Orders", b"hello"))
    return result.queue_offset
"""


def check(python: str, folder: Path, program: str) -> list[str]:
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--python-executable", python, "program.py"],
        cwd=folder, env=environment(folder), capture_output=True, text=True,
    )  # fmt: skip
    return (done.stdout + done.stderr).splitlines()


def test_user_program_passes_strict_checks(installed, tmp_path):
    assert check(installed(""), tmp_path, PROGRAM) == []


def test_mistakes_are_found(installed, tmp_path):
    wrong = PROGRAM.replace('group="g"', "group=1").replace("result.queue_offset", "result.msg_id")
    assert [line.rpartition("[")[2] for line in check(installed(""), tmp_path, wrong)] == ["arg-type]", "return-value]"]
