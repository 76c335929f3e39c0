"""Every failure of any lane counts, each file with peers runs in one lane, and reasons for skips are told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import side_by_side
from tests.side_by_side import PYTEST, ROOT, lanes, run

SUITE = """
import pytest

def test_one():
    assert {code} == 29

def test_without_a_peer():
    pytest.skip("no peer")
"""


def ending(code: int) -> list[str]:
    return [sys.executable, "-c", f"print('ends with', {code}); raise SystemExit({code})"]


@pytest.mark.parametrize("place", range(4))
def test_a_failure_at_any_place_counts(tmp_path: Path, place: int) -> None:
    codes = [3 if number == place else 0 for number in range(4)]
    one, two, three, four = map(ending, codes)
    ended = run([{"one": one}, {"two": two, "three": three}, {"four": four}], tmp_path)
    assert ended == dict(zip(("one", "two", "three", "four"), codes, strict=True))


def test_a_lane_goes_on_after_a_failure_and_its_output_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run([{"own": ending(0)}, {"one": ending(4), "two": ending(0)}], tmp_path)
    assert capfd.readouterr().out == "ends with 0\none, two:\nends with 4\nends with 0\n\n"


@pytest.mark.parametrize(
    ("text", "code"), [(SUITE.format(code=29), 0), (SUITE.format(code=1), 1), ("import nothing", 2)]
)
def test_pytest_ends_with_its_code_and_tells_why_tests_were_skipped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    (tmp_path / "test_them.py").write_text(text)
    assert run([{"pytest": [*PYTEST, str(tmp_path)]}], tmp_path) == {"pytest": code}
    assert ("no peer" in capfd.readouterr().out) is (code != 2)


def test_each_file_with_peers_runs_in_one_lane() -> None:
    ran = [word for lane in lanes() for command in lane.values() for word in command if word.startswith("interop/")]
    assert sorted(ran) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "interop").rglob("test_*.py"))


def test_the_suite_runs_whole() -> None:
    first, second, third = lanes()
    assert first["pytest"] == [*PYTEST, "-m", "not trial", "tests"]
    assert [list(lane) for lane in (first, second, third)] == [
        ["pytest", "with peers, the rest"],
        ["trial", "newest Python"],
        ["with peers"],
    ]


def test_nothing_runs_while_apaches_answers_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ_RECORD_APACHE", "2026-11-23")
    monkeypatch.setattr(side_by_side, "run", None)
    assert side_by_side.main() == 1
