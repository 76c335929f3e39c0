"""A plugin of pytest that writes down how each test ended: `-p tests.outcomes --outcomes FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@attrs.frozen
class Outcome:
    """The outcome of a test: PASSED, FAILED or SKIPPED, with the text of the first failure or the reason for the skip."""

    word: str
    text: str = ""


def read(path: Path) -> dict[str, Outcome]:
    """The outcomes by test id that a run has written. Raises OSError and ValueError where there are none."""
    return {test: Outcome(**row) for test, row in json.loads(path.read_text()).items()}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, required=True, help="the file that gets them, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Writer(config.getoption("--outcomes")))


@attrs.define(eq=False)
class _Writer:
    path: Path
    _outcomes: dict[str, Outcome] = attrs.field(factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setup, call and teardown are reported one by one: what is worse than passed stays, a failure above all."""
        known = self._outcomes.get(report.nodeid)
        if known is None or (known.word != FAILED and report.outcome != PASSED):
            self._outcomes[report.nodeid] = Outcome(report.outcome, _text(report))

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps({test: attrs.asdict(one) for test, one in self._outcomes.items()}))


def _text(report: pytest.TestReport) -> str:
    if report.outcome == SKIPPED and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return "" if report.outcome == PASSED else report.longreprtext
