"""Finds out which tests run which lines, and how long each test takes.

python -m tests.mutation.covering RESULT.json PACKAGES TEST_PATH...

Runs the tests in the current folder with coverage of the packages (comma-separated) and writes a `Covering` as JSON.
Tests that did not pass are left out.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path

import attrs
import coverage
import pytest

AT_IMPORT = ""
"""The context that coverage gives to lines that run while modules are imported, before the first test."""


@attrs.frozen
class Covering:
    """`seconds` by test that passed; `lines` the tests by path and line; `at_import` lines that run outside of tests."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    at_import: dict[str, set[int]]

    def tests_of(self, path: str, lines: Iterable[int]) -> list[str]:
        """The tests that run one of these lines, fastest first.

        Of lines that run at import these are all that run the file, and those of its own file of tests: they may read its
        constants alone.
        """
        by_line = self.lines.get(path, {})
        at_import = self.runs_at_import(path, lines)
        found = {test for line in (by_line if at_import else lines) for test in by_line.get(line, ())}
        if at_import:
            source = Path(path)
            own = f"tests/{source.parent}/test_{source.name}"
            found |= {test for test in self.seconds if test.partition("::")[0] == own}
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def runs_at_import(self, path: str, lines: Iterable[int]) -> bool:
        """Return True if one of these lines runs outside of tests."""
        return bool(self.at_import.get(path, set()) & set(lines))

    def reach(self, path: str) -> Counter[str]:
        """Return how many lines of a file each test runs."""
        return Counter(test for tests in self.lines.get(path, {}).values() for test in tests)

    def save(self, path: Path) -> None:
        tests = sorted(self.seconds)
        numbers = {test: number for number, test in enumerate(tests)}
        written = {
            "tests": [[test, self.seconds[test]] for test in tests],
            "lines": {
                name: {line: sorted(numbers[test] for test in ids) for line, ids in rows.items() if ids}
                for name, rows in self.lines.items()
            },
            "at_import": {name: sorted(lines) for name, lines in self.at_import.items()},
        }
        path.write_text(json.dumps(written, separators=(",", ":")))

    @classmethod
    def load(cls, path: Path) -> Covering:
        read = json.loads(path.read_text())
        tests = [test for test, _ in read["tests"]]
        lines = {
            name: {int(line): {tests[number] for number in numbers} for line, numbers in rows.items()}
            for name, rows in read["lines"].items()
        }
        return cls(dict(read["tests"]), lines, {name: set(lines) for name, lines in read["at_import"].items()})

    def of_file(self, file: str) -> Covering:
        """The part of one file of tests."""
        own = {test for test in self.seconds if test.partition("::")[0] == file}
        lines = {name: {line: tests & own for line, tests in rows.items()} for name, rows in self.lines.items()}
        return Covering({test: self.seconds[test] for test in own}, lines, self.at_import)

    @classmethod
    def joined(cls, parts: Iterable[Covering]) -> Covering:
        whole = cls({}, {}, {})
        for part in parts:
            whole.seconds.update(part.seconds)
            for name, rows in part.lines.items():
                known = whole.lines.setdefault(name, {})
                for line, tests in rows.items():
                    known.setdefault(line, set()).update(tests)
            for name, lines in part.at_import.items():
                whole.at_import.setdefault(name, set()).update(lines)
        return whole


class _Watch:
    """A plugin of pytest that tells coverage which test runs."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = defaultdict(float)
        self.not_passed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._measured.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._measured.switch_context(AT_IMPORT)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self.not_passed.add(report.nodeid)


def cover(root: Path, packages: list[str], tests: list[str], data_file: Path) -> Covering:
    """Run `tests` with coverage; the working folder is `root`. Raises RuntimeError where they cannot be run."""
    include = [f"{root.resolve()}/{package}/*" for package in packages]
    measured = coverage.Coverage(data_file=str(data_file), include=include, config_file=False)
    watch = _Watch(measured)
    measured.start()
    try:
        code = pytest.main(["-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests], plugins=[watch])
    finally:
        measured.stop()
        measured.save()
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {code!r}: not all tests were run")
    seconds = {test: round(taken, 4) for test, taken in watch.seconds.items() if test not in watch.not_passed}
    return _read(measured.get_data(), root.resolve(), seconds)


def _read(data: coverage.CoverageData, root: Path, seconds: dict[str, float]) -> Covering:
    lines: dict[str, dict[int, set[str]]] = {}
    at_import: dict[str, set[int]] = {}
    for name in sorted(data.measured_files()):
        path = str(Path(name).relative_to(root))
        contexts = data.contexts_by_lineno(name)
        lines[path] = {line: seconds.keys() & set(tests) for line, tests in contexts.items()}
        at_import[path] = {line for line, tests in contexts.items() if AT_IMPORT in tests}
    return Covering(seconds, lines, at_import)


def main(arguments: list[str]) -> int:
    result, packages, *tests = arguments
    path = Path(result)
    cover(Path.cwd(), packages.split(","), tests, path.with_suffix(".coverage")).save(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
