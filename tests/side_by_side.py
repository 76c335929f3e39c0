"""`make test`: three lanes of tests side by side, of which those with Apache's programs wait much of the time.

python -m tests.side_by_side

The output of the first lane comes as it is made, that of the others when the first has ended. Every failure counts: no test runs
a second time. Each run of pytest ends with its slowest tests, and with the reasons for which tests were skipped. Ends with 1
if anything failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

from interop.recorded import DATE_OF_RECORDING

ROOT = Path(__file__).parents[1]
PYTEST = (sys.executable, "-m", "pytest", "-rs", "--durations=20")
BOUNDARY = "test_sql"
"""Tests with peers in files from this name on run behind pytest's other tests. Both lanes then end at about the same time."""
Lane = Mapping[str, Sequence[str]]
"""Commands by name, which run one after the other."""


def lanes() -> list[Lane]:
    """Return the lanes. One of them is short: three for the whole time, on two cores, broke deadlines of Apache's programs."""
    names = sorted(path.name for path in (ROOT / "interop").glob("test_*.py"))
    return [
        {
            "pytest": [*PYTEST, "-m", "not trial", "tests"],
            "with peers, the rest": [*PYTEST, *(f"interop/{name}" for name in names if name >= BOUNDARY)],
        },
        {
            "trial": [sys.executable, "-m", "twisted.trial", "tests.twisted_mq"],
            "newest Python": [sys.executable, "-m", "tests.newest_python"],
        },
        {"with peers": [*PYTEST, *(f"interop/{name}" for name in names if name < BOUNDARY)]},
    ]


def run(several: Sequence[Lane], folder: Path) -> dict[str, int]:
    """Return exit codes by name. The output of all lanes but the first is kept in `folder` until it is printed."""
    logs = [None, *(folder / f"{number}.log" for number in range(1, len(several)))]
    with ThreadPoolExecutor(len(several)) as pool:
        running = [pool.submit(_codes, lane, log) for lane, log in zip(several, logs, strict=True)]
        return {name: code for one, log in zip(running, logs, strict=True) for name, code in _ended(one.result(), log)}


def _codes(lane: Lane, log: Path | None) -> dict[str, int]:
    with nullcontext() if log is None else log.open("wb") as output:
        return {
            name: subprocess.run(command, stdout=output, stderr=output).returncode for name, command in lane.items()
        }


def _ended(codes: Mapping[str, int], log: Path | None) -> Iterator[tuple[str, int]]:
    if log is not None:
        print(f"{', '.join(codes)}:\n{log.read_text(errors='replace')}", flush=True)
    return iter(codes.items())


def main() -> int:
    """Return the exit code."""
    if DATE_OF_RECORDING in os.environ:
        print(f"FAILED: {DATE_OF_RECORDING} is set: tests would write down what they are to compare with")
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        codes = run(lanes(), Path(folder))
    failed = any(codes.values())
    results = ", ".join(f"{name} {code}" for name, code in codes.items())
    print(f"{'FAILED' if failed else 'passed'} after {(time.monotonic() - began) / 60:.0f} minutes: {results}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
