"""A failed test with Apache's programs counts, unless it may run again and passes then; second runs are printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import side_by_side
from tests.side_by_side import MAY_RUN_AGAIN, SOME_FAILED, WithPeers, run, skips

ROOT = Path(__file__).parents[1]
REASON = "Apache's programs wait 3 s"
LATE = """
import pathlib
import pytest

SECOND = pathlib.Path(__file__).with_name("second")

@pytest.mark.parametrize("number", [1, 2])
def test_late(number):
    second = SECOND.exists()
    SECOND.touch()
    if second and {skips}:
        pytest.skip("no peer")
    assert (number, second and {mended}) in ((1, True), (2, False), (2, True)), "too late"

def test_well():
    pass

def test_without_a_peer():
    pytest.skip("no peer")
"""
SERVER = """
import pytest

ANSWERS = {}
CODES = {"apache": 29, "ours": %d}

@pytest.fixture(params=list(CODES))
def kind(request):
    return request.param

def test_code_is_apaches(kind):
    code = CODES[kind]
    if kind == "apache":
        ANSWERS["code"] = code
    assert code == ANSWERS.get("code", code)
"""
"""The second run of [ours] alone compares a code with itself and passes, which must not help it."""


def suite(folder: Path, text: str, **may_run_again: str) -> WithPeers:
    tests = folder / "tests"
    tests.mkdir()
    (tests / "test_them.py").write_text(text)
    allowed = {f"tests/test_them.py::{name}": reason for name, reason in may_run_again.items()}
    return WithPeers(folder, folder, "tests", allowed)


def codes_of(with_peers: WithPeers, own: int = 0, beside: int = 0) -> dict[str, int]:
    def ending(code: int) -> list[str]:
        return [sys.executable, "-c", f"print('ends with', {code}); raise SystemExit({code})"]

    return run({"own": ending(own)}, {"one": ending(0), "two": ending(beside)}, with_peers, with_peers.folder)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the test's folder the root of the suites in it."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\n")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_a_listed_test_that_passes_the_second_time_passes_and_its_first_failure_is_told(tmp_path: Path) -> None:
    with_peers = suite(tmp_path, LATE.format(mended=True, skips=False), test_late=REASON)
    assert codes_of(with_peers) == {"own": 0, "one": 0, "two": 0, "with peers": 0}
    (again,) = with_peers.again
    assert (again.test, again.second.word) == ("tests/test_them.py::test_late[1]", "passed")
    told = str(again)
    assert "ran again, passed then: tests/test_them.py::test_late[1]" in told
    assert REASON in told
    assert "AssertionError: too late" in told


def test_a_listed_test_that_fails_the_second_time_too_fails(tmp_path: Path) -> None:
    with_peers = suite(tmp_path, LATE.format(mended=False, skips=False), test_late=REASON)
    assert codes_of(with_peers)["with peers"] == SOME_FAILED
    assert [again.second.word for again in with_peers.again] == ["failed"]


def test_a_listed_test_that_is_skipped_the_second_time_fails(tmp_path: Path) -> None:
    with_peers = suite(tmp_path, LATE.format(mended=True, skips=True), test_late=REASON)
    assert codes_of(with_peers)["with peers"] == SOME_FAILED
    assert [again.second.word for again in with_peers.again] == ["skipped"]


def test_a_test_that_is_not_listed_has_no_second_run(tmp_path: Path) -> None:
    with_peers = suite(tmp_path, LATE.format(mended=True, skips=False), test_well=REASON)
    assert codes_of(with_peers)["with peers"] == SOME_FAILED
    assert with_peers.again == []


@pytest.mark.parametrize(("code", "result"), [(29, 0), (1, SOME_FAILED)], ids=["Apache's", "another"])
def test_a_wrong_response_code_of_ours_is_red(tmp_path: Path, code: int, result: int) -> None:
    with_peers = suite(tmp_path, SERVER % code)
    assert codes_of(with_peers)["with peers"] == result


def test_tests_that_cannot_be_loaded_are_red(tmp_path: Path) -> None:
    with_peers = suite(tmp_path, "import nothing_of_this_name", test_late=REASON)
    assert codes_of(with_peers)["with peers"] not in (0, SOME_FAILED)
    assert with_peers.again == []


def test_failures_of_own_tests_stay_and_what_ran_beside_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with_peers = suite(tmp_path, SERVER % 29)
    assert codes_of(with_peers, own=3, beside=4) == {"own": 3, "one": 0, "two": 4, "with peers": 0}
    assert "one, two:\nends with 0\nends with 4\n" in capfd.readouterr().out


def test_what_was_skipped_is_told_with_its_reason(tmp_path: Path) -> None:
    with_peers = suite(tmp_path, LATE.format(mended=True, skips=False), test_late=REASON)
    codes_of(with_peers)
    assert list(skips(with_peers.outcomes)) == ["skipped 1: Skipped: no peer"]


def test_nothing_runs_while_apaches_answers_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ_RECORD_APACHE", "2026-11-23")
    monkeypatch.setattr(side_by_side, "run", None)
    assert side_by_side.main() == 1


@pytest.mark.parametrize("test", MAY_RUN_AGAIN or [pytest.param("", marks=pytest.mark.skip("the list is empty"))])
def test_each_test_that_may_run_again_exists(test: str) -> None:
    path, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()
