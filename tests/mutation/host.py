"""Runs tests again and again in a process that has the libraries loaded already, each run in a child.

python -m tests.mutation.host

Reads a line of JSON for each run: `tests` (ids by file, in order), `timeout_seconds`, `log`. Answers with the word for what
happened. This process never loads the modules under test, so each child reads them again from the current folder.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from typing import Any

import attrs
import construct  # noqa: F401 - loaded once, for all children
import hypothesis
import lz4.frame  # noqa: F401
import msgspec  # noqa: F401
import numpy  # noqa: F401
import pytest
import sortedcontainers  # noqa: F401
import sqlglot  # noqa: F401
import twisted.internet.defer
import twisted.internet.task  # noqa: F401
import zope.interface  # noqa: F401
import zstandard  # noqa: F401

PASSED, FAILED, TIMEOUT = "passed", "failed", "timeout"
MOST_MEMORY = 4 << 30
NO_TESTS = 5
"""The exit code of pytest if it ran no tests. Every other code but 0 is a failure, a failed import included."""
NO_SHRINKING = hypothesis.settings(
    deadline=None, database=None, phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate)
)
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--hypothesis-profile=mutation")


@attrs.define
class _Chosen:
    """A plugin of pytest that runs these tests only."""

    tests: set[str]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.tests]


def run(tests: dict[str, list[str]], timeout_seconds: float, log: str) -> str:
    """Run tests in a child and return PASSED, FAILED or TIMEOUT."""
    child = os.fork()
    if child == 0:
        _run_in_child(tests, log)
    waiting = os.pidfd_open(child)
    try:
        in_time, _, _ = select.select([waiting], [], [], timeout_seconds)
    finally:
        os.close(waiting)
        _end_group(child)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return TIMEOUT
    code = os.waitstatus_to_exitcode(status)
    if code == NO_TESTS:
        raise LookupError(f"no such tests: {tests}")
    return PASSED if code == 0 else FAILED


def _run_in_child(tests: dict[str, list[str]], log: str) -> None:
    code = 1
    try:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        hypothesis.settings.register_profile("mutation", NO_SHRINKING)
        chosen = _Chosen({test for ids in tests.values() for test in ids})
        code = int(pytest.main([*OPTIONS, *tests], plugins=[chosen]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def _end_group(child: int) -> None:
    """End the child and what it started: its process group has its number."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(
            child, signal.SIGKILL
        )  # it has not made its group yet; it is not reaped, so the number is still its own


def main() -> int:
    assert "twisted.internet.reactor" not in sys.modules, "children cannot share a reactor"
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        print(run(request["tests"], request["timeout_seconds"], request["log"]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
