"""Size of an install: packages and megabytes for each extra, and the processor time of an import.

`python -m tests.packaging.sizes PYTHON...` prints the processor time of each interpreter's import, the least of ten.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

IMPORTS = {
    "twisted_mq.aio": "from twisted_mq.aio import Message, Producer, PushConsumer",
    "twisted_mq.blocking": "from twisted_mq.blocking import Message, Producer, PushConsumer",
    "aiokafka": "from aiokafka import AIOKafkaConsumer, AIOKafkaProducer",
}
TIMED = "import time; began = time.process_time(); {}; print(time.process_time() - began)"
TRIES = 10
MEGABYTE = 1_000_000


def megabytes(distributions: Iterable[Distribution]) -> float:
    """The files of distributions as they are installed, without the bytecode that Python adds."""
    return sum(_bytes(one) for one in distributions) / MEGABYTE


def _bytes(one: Distribution) -> int:
    paths = [Path(str(one.locate_file(file))) for file in one.files or () if "__pycache__" not in file.parts]
    return sum(path.stat().st_size for path in paths if path.is_file())


def named(names: Iterable[str]) -> list[Distribution]:
    """The distributions of this environment under these names."""
    return [distribution(name) for name in names]


def import_seconds(python: str, statement: str) -> float:
    """Processor time of an import in a new interpreter: the least of several."""
    command = [python, "-c", TIMED.format(statement)]
    runs = [subprocess.run(command, capture_output=True, text=True, cwd="/") for _ in range(TRIES)]
    return min(float(one.stdout) for one in runs if one.returncode == 0)


def main(pythons: list[str]) -> None:
    """Print the seconds of each import that an interpreter can do."""
    for python in pythons:
        for name, statement in IMPORTS.items():
            if subprocess.run([python, "-c", statement], capture_output=True, cwd="/").returncode == 0:
                print(f"{python} {name}: {import_seconds(python, statement):.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
