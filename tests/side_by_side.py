"""`make test`: three runs of tests side by side, of which those with Apache's programs wait most of the time.

python -m tests.side_by_side

The output of the first comes as it is made, that of the others when the first has ended. Ends with 1 where anything failed.

Apache's programs have deadlines of their own, which a slow and full machine breaks. If all tests with them that failed are in
`MAY_RUN_AGAIN`, these run once more when nothing else does, and count as passed if they pass then. Any other failure counts. Each
second run is printed at the end, with the text of the first failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import attrs

from interop.recorded import DATE_OF_RECORDING
from tests.outcomes import FAILED, PASSED, SKIPPED, Outcome, read

PYTEST = [sys.executable, "-m", "pytest"]
FIRST = {"pytest": [*PYTEST, "-m", "not trial", "tests"]}
SECOND = {
    "trial": [sys.executable, "-m", "twisted.trial", "tests.twisted_mq"],
    "newest Python": [sys.executable, "-m", "tests.newest_python"],
}
SOME_FAILED = 1
"""Exit code of pytest then; other errors have other codes."""
MAY_RUN_AGAIN: dict[str, str] = {}
"""Tests by id without parameters, each with the deadline of Apache's that it depends on and that no setting moves.

Empty: all tests with Apache's programs passed on two cores under a load of 8 to 14.
"""


@attrs.frozen
class Again:
    """A second run of a test: why it was allowed, how the first one failed, how the second one ended."""

    test: str
    reason: str
    first: Outcome
    second: Outcome

    def __str__(self) -> str:
        return f"ran again, {self.second.word} then: {self.test}\n  allowed: {self.reason}\n  first failure:\n{self.first.text}"


@attrs.define
class WithPeers:
    """The tests in `tests` below `root`, of which some may run again; how they end is noted in `folder`."""

    folder: Path
    root: Path = Path(__file__).parents[1]
    tests: str = "interop"
    may_run_again: Mapping[str, str] = attrs.field(factory=lambda: MAY_RUN_AGAIN)
    again: list[Again] = attrs.field(factory=list)
    """The second runs that there were."""

    @property
    def outcomes(self) -> dict[str, Outcome]:
        return read(self.folder / "first.json")

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(self._command("first", [self.tests]), cwd=self.root, stdout=output, stderr=output)

    def final_code(self, code: int) -> int:
        """The exit code that counts, after second runs where they are allowed."""
        if code != SOME_FAILED:
            return code
        failed = {test: outcome for test, outcome in self.outcomes.items() if outcome.word == FAILED}
        reasons = {test: self.may_run_again.get(test.partition("[")[0]) for test in failed}
        if not failed or None in reasons.values():
            return code
        second_code = subprocess.run(self._command("second", list(failed)), cwd=self.root).returncode
        second = read(self.folder / "second.json")
        missing = Outcome("not run")
        self.again += [Again(test, str(reasons[test]), failed[test], second.get(test, missing)) for test in failed]
        return second_code or int(any(one.second.word != PASSED for one in self.again))

    def _command(self, which: str, tests: Sequence[str]) -> list[str]:
        return [*PYTEST, "-p", "tests.outcomes", "--outcomes", str(self.folder / f"{which}.json"), *tests]


def skips(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """A line for each reason for which tests were skipped."""
    counted = Counter(outcome.text for outcome in outcomes.values() if outcome.word == SKIPPED)
    for reason, count in counted.items():
        yield f"skipped {count}: {reason}"


Commands = Mapping[str, Sequence[str]]
"""The commands by name. They run one after the other."""


def run(first: Commands, second: Commands, with_peers: WithPeers, folder: Path) -> dict[str, int]:
    """Exit codes by name. The output of `second` and of the tests with peers is kept in `folder` until it is printed."""
    second_log, peers_log = folder / "second.log", folder / "peers.log"
    with with_peers.start(peers_log) as beside, ThreadPoolExecutor(1) as pool:
        try:
            running = pool.submit(_codes, second, second_log)
            codes = _codes(first, None)
            codes |= running.result()
            _print(", ".join(second), second_log)
            code = beside.wait()
        except BaseException:
            beside.terminate()
            raise
    _print("with peers", peers_log)
    return codes | {"with peers": with_peers.final_code(code)}


def _codes(commands: Commands, log: Path | None) -> dict[str, int]:
    with nullcontext() if log is None else log.open("wb") as output:
        return {
            name: subprocess.run(command, stdout=output, stderr=output).returncode for name, command in commands.items()
        }


def _print(name: str, log: Path) -> None:
    print(f"{name}:\n{log.read_text(errors='replace')}", flush=True)


def main() -> int:
    """The exit code."""
    if DATE_OF_RECORDING in os.environ:
        print(f"FAILED: {DATE_OF_RECORDING} is set: tests would write down what they are to compare with")
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        with_peers = WithPeers(Path(folder))
        codes = run(FIRST, SECOND, with_peers, Path(folder))
        told = [*skips(with_peers.outcomes), *map(str, with_peers.again)] if codes["with peers"] in (0, 1) else []
    failed = any(codes.values())
    results = ", ".join(f"{name} {code}" for name, code in codes.items())
    print(
        "\n".join(
            [
                *told,
                f"{'FAILED' if failed else 'passed'} after {(time.monotonic() - began) / 60:.0f} minutes: {results}",
            ]
        )
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
