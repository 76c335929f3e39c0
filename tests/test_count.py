"""The paths of `make count` do what is counted, and the counts are read and compared as they are meant. No valgrind needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench import count, count_runs
from tests.bench.client_paths import CLIENT_PATHS
from tests.bench.count_paths import BATCH, INDEX_STEP, PATHS, REPLICA_STEP, CountedPath, Prepared, answered, found
from twisted_mq.broker.schedule.timer_service import MESSAGES_A_TURN

TEXT = "desc: I1 cache: (unused)\ncmd: python\nevents: Ir\nfl=a.c\nfn=f\n7 12\nsummary: 4098267041\n"


def nothing(folder: str, count: int) -> Prepared:
    return Prepared(len, [b""] * count)


@pytest.mark.parametrize("path", count_runs.ALL_PATHS, ids=lambda path: path.name)
def test_path_ends_in_success(path: CountedPath, tmp_path: Path) -> None:
    prepared = path.prepare(str(tmp_path), 2)
    try:
        assert path.succeeded(prepared.run(2))
    finally:
        prepared.close()


def test_paths_have_names_of_their_own_and_pieces_to_differ_in() -> None:
    assert len({path.name for path in count_runs.ALL_PATHS}) == len(count_runs.BROKER_PATHS) + len(CLIENT_PATHS)
    assert all(0 < path.few < path.many for path in count_runs.ALL_PATHS)
    assert {path.messages for path in PATHS} == {1, BATCH, MESSAGES_A_TURN, INDEX_STEP, REPLICA_STEP}


def test_refusal_is_no_success() -> None:
    refusal = next(path for path in PATHS if path.name == "encode its answer, JSON").prepare("", 1).run(1)
    assert answered(refusal)
    assert not answered(refusal.replace(b'"code":0', b'"code":1'))
    assert not answered(refusal, frames=2)
    assert not found(refusal)


def test_as_many_pieces_are_handed_in_as_asked_for() -> None:
    handed: list[int] = []
    prepared = Prepared(lambda piece: handed.append(piece) or piece, range(9))
    assert prepared.run(4) == 3
    assert handed == [0, 1, 2, 3]


def test_difference_is_what_each_further_request_took() -> None:
    path = CountedPath("p", nothing, bool, 10, 30, requests=32)
    start, piece = 4_000_000_000, 32 * 1500
    assert count_runs.difference(path, {10: start + 10 * piece, 30: start + 30 * piece}) == 1500


def test_total_is_read_from_the_summary() -> None:
    assert count_runs.instructions_of(TEXT) == 4098267041
    with pytest.raises(count_runs.CountError):
        count_runs.instructions_of(TEXT.partition("summary")[0])


def test_child_that_fails_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(count_runs.CountError, match="p: no success"):
        count_runs.in_child(CountedPath("p", nothing, bool, 1, 2), 1, "")


def test_child_that_succeeds_is_named() -> None:
    path = CountedPath("p", nothing, lambda length: length == 0, 1, 2)
    assert count_runs.in_child(path, 1, "") not in (0, os.getpid())


@pytest.mark.parametrize("few", [100, 200])
def test_counts_are_taken_in_pairs(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in valgrind's place writes what cachegrind would."""
    program = (
        "import sys; folder = sys.argv[1]\n"
        "for count in (FEW, 1000):\n"
        "    open(f'{folder}/counts.{count}', 'w').write(f'summary: {5000 + 7 * count}\\n')\n"
        "    print('p', count, count, sep='\\t')\n"
    ).replace("FEW", str(few))
    monkeypatch.setattr(count_runs, "command", lambda folder, names: [count_runs.sys.executable, "-c", program, folder])
    path = CountedPath("p", nothing, bool, few, 1000)
    assert list(count_runs.count_paths([path])) == [(path, 7)]


def test_table_is_read_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "valgrind_version", lambda: "valgrind-3.19.0")
    figures = {path.name: 1000.0 * number + 500_000 for number, path in enumerate(count_runs.BROKER_PATHS)}
    assert count.read_figures(count.markdown("f.md", figures, 0.03)) == figures


def test_stored_tables_have_all_paths() -> None:
    assert list(count.read_figures(count.STORED.read_text())) == [path.name for path in count_runs.BROKER_PATHS]
    assert list(count.read_figures(count.CLIENT_STORED.read_text())) == [path.name for path in CLIENT_PATHS]


def test_row_shows_a_message_and_the_difference() -> None:
    path = CountedPath("batch", nothing, bool, 1, 2, messages=32)
    assert count.row(path, 64_000, 80_000).split() == ["batch", "64,000", "2,000", "80,000", "-20.00", "%"]
    assert count.row(path, 64_000, None).split() == ["batch", "64,000", "2,000", "-", "-"]
    assert count.greatest_difference({"a": 100.0, "b": 50.0}, {"a": 99.0, "b": 51.0}) == pytest.approx(2)


def test_one_path_is_chosen_by_its_name_and_several_by_a_part() -> None:
    assert [path.name for path in count.chosen("send, JSON")] == ["send, JSON"]
    assert len(count.chosen("pull of 32")) == 3
    assert len(count.chosen(None)) == len(count_runs.ALL_PATHS)


def test_missing_valgrind_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(count.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install valgrind"):
        count.main(["--only", "pop"])
