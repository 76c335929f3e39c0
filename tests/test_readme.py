"""What the README shows works: its Python runs, its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)
RUN_SCENARIO = """
from twisted.internet.defer import Deferred
from twisted.internet.task import react
react(lambda reactor: Deferred.fromCoroutine(scenario(reactor)))
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_embedded_cluster_example_runs() -> None:
    (example,) = [block for block in PYTHON_BLOCKS if "EmbeddedCluster" in block]
    run(example + RUN_SCENARIO)


def test_spark_example_names_what_exists() -> None:
    (example,) = [block for block in PYTHON_BLOCKS if "RocketMQDataSource" in block]
    imports = "\n".join(line for line in example.splitlines() if "import" in line)
    run(imports + "\nassert RocketMQDataSource.name() == 'rocketmq'\n")


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^\.venv/bin/mq (\w+(?: (?:verify|dump))?)", README, re.M))))
def test_command_exists(command: str) -> None:
    words = [str(Path(sys.executable).parent / "mq"), *command.split(), "--help"]
    assert "Usage" in subprocess.run(words, capture_output=True, text=True, timeout=30).stdout


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`?make (\w+)", README)) - {"a"}))
def test_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(?:interop/)?(test_\w+\.py)`", README))))
def test_named_file_exists(name: str) -> None:
    assert (ROOT / "interop" / name).is_file()
