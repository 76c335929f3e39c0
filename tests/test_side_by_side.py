"""What failed beside other tests runs once more alone, if it is little, and is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.side_by_side import MOST_AGAIN, SOME_FAILED, WithPeers

TESTS = """
import pathlib
import pytest

ALONE = pathlib.Path(__file__).with_name("alone")

@pytest.mark.parametrize("number", range({failing}))
def test_late(number):
    assert ALONE.exists()

def test_well():
    assert not ALONE.exists()
"""


def run(folder: Path, failing: int, *, mended: bool) -> int:
    tests = folder / "tests"
    tests.mkdir()
    (tests / "test_them.py").write_text(TESTS.format(failing=failing))
    with_peers = WithPeers(folder / "cache", str(tests))
    with with_peers.start(folder / "log") as beside:
        assert beside.wait() == SOME_FAILED, (folder / "log").read_text()
    if mended:
        (tests / "alone").touch()
    return with_peers.again()


@pytest.mark.parametrize(("mended", "code", "word"), [(True, 0, "passed"), (False, SOME_FAILED, "not all passed")])
def test_the_second_time_counts_and_both_are_told(tmp_path, capfd, mended, code, word):
    assert run(tmp_path, 1, mended=mended) == code
    assert f"failed beside the others, {word} alone: " in capfd.readouterr().out


def test_many_are_not_tried_again(tmp_path, capfd):
    assert run(tmp_path, MOST_AGAIN + 1, mended=True) == SOME_FAILED
    assert capfd.readouterr().out == ""
