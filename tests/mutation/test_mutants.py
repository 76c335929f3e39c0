"""Mutants are small faults; a mutant that a test notices is killed, in a copy of the tree."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.mutation import run
from tests.mutation.covering import Covering
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.run import Results, report, sample, stages, try_all

SOURCE = textwrap.dedent(
    '''\
    """A text."""

    LIMIT = 10


    def fits(size: int | None) -> bool:
        """Whether it does: é."""
        if size is None:
            raise ValueError("no size")
        return size < LIMIT


    def unused() -> int:
        return LIMIT * 2
    '''
)
TEST = textwrap.dedent(
    """\
    import pytest
    from goods.sizes import fits

    def test_limit():
        assert fits(9) and not fits(11)

    def test_absent():
        with pytest.raises(ValueError):
            fits(None)
    """
)
PATH = "goods/sizes.py"


def test_each_kind_of_fault_is_made_where_it_is() -> None:
    assert [(one.scope, one.original, one.replacement) for one in mutants_of(PATH, SOURCE.encode())] == [
        ("module", "10", "11"),
        ("module", "10", "9"),
        ("fits", "size is None", "(size is not None)"),
        ("fits", 'raise ValueError("no size")', "pass"),
        ("fits", "return size < LIMIT", "return None"),
        ("fits", "size < LIMIT", "(size <= LIMIT)"),
        ("fits", "size < LIMIT", "(size > LIMIT)"),
        ("unused", "return LIMIT * 2", "return None"),
        ("unused", "LIMIT * 2", "(LIMIT // 2)"),
        ("unused", "2", "1"),
        ("unused", "2", "3"),
    ]


def test_a_mutant_changes_its_own_bytes_alone() -> None:
    mutants = mutants_of(PATH, SOURCE.encode())
    (found,) = (one for one in mutants if one.replacement == "(size <= LIMIT)")
    assert found.apply(SOURCE.encode()).decode() == SOURCE.replace("size < LIMIT", "(size <= LIMIT)")
    assert found.lines == (10,)


def test_names_tell_alike_faults_of_one_function_apart() -> None:
    mutants = mutants_of(PATH, b"def twice(a, b):\n    return (a == b, a == b)\n")
    assert len({one.name for one in mutants}) == len(mutants) == 3


@pytest.mark.parametrize(
    "source",
    [
        "def f(a: int = None) -> 1 | 2: ...",
        "x: Literal[3]",
        "class A:\n    __slots__ = ('a', 'b')",
        "if TYPE_CHECKING:\n    import a",
        "text = f'{1 + 1}'",
        "Answer = Command | None",
        "raised = 'a text with spaces'",
    ],
)
def test_what_runs_not_or_only_tells_has_no_mutants(source: str) -> None:
    assert mutants_of(PATH, source.encode()) == []


def named(package: str, count: int) -> list[Mutant]:
    return [Mutant(f"{package}/m.py", "f", "constant", at, at + 1, (1,), "1", "2", at) for at in range(count)]


def test_packages_take_turns_and_a_larger_sample_begins_with_a_smaller_one() -> None:
    found = {"a": named("a", 50), "b": named("b", 3), "c": named("c", 50)}
    small, large = sample(found, 6, "7"), sample(found, 60, "7")
    assert large[:6] == small
    assert sorted(one.path for one in small) == ["a/m.py"] * 2 + ["b/m.py"] * 2 + ["c/m.py"] * 2
    assert len(set(large)) == 60
    assert sample(found, 6, "8") != small


def test_tests_of_the_own_file_come_first_then_those_that_run_most_of_it_and_none_past_the_limit() -> None:
    seconds = {"tests/goods/test_all.py::a": 1, "tests/b.py::b": 0.5, "tests/goods/test_sizes.py::c": 2}
    seconds |= {"tests/goods/test_sizes.py::slow": 9, "tests/other.py::of_another_line": 0.1}
    of_line = set(list(seconds)[:4])
    lines = {1: of_line, 2: {"tests/other.py::of_another_line"}, 3: {"tests/goods/test_all.py::a"}}
    lines |= {4: {"tests/goods/test_sizes.py::slow"}}
    covering = Covering(seconds, {PATH: lines}, {})
    mutant = Mutant(PATH, "f", "constant", 0, 1, (1,), "1", "2")
    tried = [one for stage in stages(covering, mutant, 4) for tests in stage.values() for one in tests]
    assert tried == ["tests/goods/test_sizes.py::c", "tests/goods/test_all.py::a", "tests/b.py::b"]


def test_a_line_that_runs_at_import_concerns_all_tests_of_its_file() -> None:
    covering = Covering({"t.py::a": 1, "t.py::b": 2}, {PATH: {1: set(), 2: {"t.py::b"}, 3: {"t.py::a"}}}, {PATH: {1}})
    assert covering.tests_of(PATH, [1]) == ["t.py::a", "t.py::b"]
    assert covering.tests_of(PATH, [2]) == ["t.py::b"]


def test_a_line_that_runs_at_import_concerns_the_tests_of_the_sources_own_file_too() -> None:
    own, other = "tests/protocol/layouts/test_m.py::of_constants", "tests/protocol/wire/test_m.py::of_another"
    path = "protocol/layouts/m.py"
    covering = Covering({own: 1, other: 1}, {path: {1: set(), 2: set()}}, {path: {1}})
    assert (covering.tests_of(path, [1]), covering.tests_of(path, [2])) == ([own], [])


def test_constants_of_a_tuple_run_where_it_begins() -> None:
    source = 'NAMES = (\n    "a",\n    "b",\n)\nPARTS = [\n    f(1),\n    "c",\n]\n'
    found = {one.original: one.lines for one in mutants_of(PATH, source.encode())}
    assert found == {'"a"': (2, 1), '"b"': (3, 1), "1": (6,), '"c"': (7,)}


@pytest.mark.parametrize(("at_import", "first"), [({1}, "tests/goods/t.py::near"), (set(), "tests/far.py::of_more")])
def test_tests_of_the_sources_folder_come_before_others_for_a_line_that_runs_at_import(
    at_import: set[int], first: str
) -> None:
    tests = {"tests/goods/t.py::near", "tests/far.py::of_more"}
    lines = {1: tests, 2: {"tests/far.py::of_more"}}
    covering = Covering(dict.fromkeys(tests, 1), {PATH: lines}, {PATH: at_import})
    (stage,) = stages(covering, Mutant(PATH, "f", "constant", 0, 1, (1,), "1", "2"), 1)
    assert stage == {first.partition("::")[0]: [first]}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of one source and one test, beside the driver's own modules."""
    tree = tmp_path / "tree"
    for name, text in {PATH: SOURCE, "tests/goods/test_sizes.py": TEST}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    own = Path(run.__file__).parent
    (tree / "tests" / "mutation").mkdir()
    for file in own.glob("*.py"):
        (tree / "tests" / "mutation" / file.name).write_text(file.read_text())
    (tree / "tests" / "conftest.py").write_text("")
    monkeypatch.setattr(run, "KEPT", tmp_path)
    monkeypatch.setattr(run, "PACKAGES", ("goods",))
    monkeypatch.setattr(run, "TESTS", ("tests/goods",))
    return tree


def test_mutants_that_a_test_notices_are_killed_and_others_told(tree: Path, tmp_path: Path) -> None:
    mutants = mutants_of(PATH, SOURCE.encode())
    results = Results.load(tmp_path / "results.jsonl")
    second = Path(shutil.copytree(tree, tmp_path / "second"))
    outcomes = try_all(mutants, [tree, second], results, argparse.Namespace(seconds=30, again=False), {})
    assert {one.replacement: outcome for one, outcome in outcomes.items() if one.scope == "fits"} == {
        "(size is not None)": "failed",
        "pass": "failed",
        "return None": "failed",
        "(size <= LIMIT)": "survived",
        "(size > LIMIT)": "failed",
    }
    assert {outcome for one, outcome in outcomes.items() if one.scope == "unused"} == {"no test runs it"}
    assert (tree / PATH).read_text() == (second / PATH).read_text() == SOURCE
    assert Results.load(tmp_path / "results.jsonl") == results
    survivor = next(one.name for one in outcomes if one.replacement == "(size <= LIMIT)")
    lines = list(report(outcomes, {survivor: "no size is LIMIT"}))
    assert lines[1].endswith("1 equivalent; 50.0 % of the others killed")
    assert len(lines) == 2 + 5
    assert not any(survivor in line for line in lines)


def test_tests_that_cannot_be_loaded_are_an_error(tree: Path) -> None:
    (tree / "tests" / "goods" / "test_broken.py").write_text("import nothing_of_this_name")
    with pytest.raises(subprocess.CalledProcessError):
        run.cover([tree])
    assert not list(run.KEPT.glob("tests-goods-*"))
