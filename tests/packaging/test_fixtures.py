"""The fixtures that an installed wheel brings to pytest, where nothing else of this project's tests is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest

from tests.packaging.conftest import link_files, wanted
from tests.packaging.daemons import environment

TEST = """
from twisted_mq.client import Message

def test_it(mq_server, mq_topic):
    mq_server.send(Message(mq_topic, b"hello"))
    assert [message.body for message in mq_server.messages(mq_topic)] == [b"hello"]
"""
UNUSED = """
import sys

def test_it():
    assert [name for name in ("twisted", "attr", "construct") if name in sys.modules] == []
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH that holds pytest and what it needs."""
    folder = tmp_path_factory.mktemp("pytest")
    for name in ("pytest", *(one.name for one in wanted(requires("pytest"), ""))):
        link_files(distribution(name), folder)
    return folder


def run(python: str, runner: Path, folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(test)
    return subprocess.run(
        [python, "-m", "pytest", "-q", "test_it.py"], cwd=folder,
        env={**environment(folder), "PYTHONPATH": str(runner)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_wheel_brings_the_fixtures(installed: Callable[[str], str], runner: Path, tmp_path: Path) -> None:
    done = run(installed("broker"), runner, tmp_path, TEST)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_nothing_is_loaded_for_tests_without_them(
    installed: Callable[[str], str], runner: Path, tmp_path: Path
) -> None:
    done = run(installed("broker"), runner, tmp_path, UNUSED)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_without_the_broker_they_say_what_to_install(
    installed: Callable[[str], str], runner: Path, tmp_path: Path
) -> None:
    done = run(installed(""), runner, tmp_path, TEST)
    assert done.returncode == 1
    missing = "javaproperties, numpy, sortedcontainers, sqlglot"
    assert f'twisted_mq.testing needs {missing}: pip install "rocketmq-twisted[broker]"' in done.stdout
