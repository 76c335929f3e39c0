"""The language of what was read through, and the rules that check it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.language import MENDED, ROOT, TEXTS, classes_of_one_name, findings, text_findings


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr("tests.docs.language.ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", MENDED)
def test_what_was_mended_reads_well(path: str) -> None:
    assert (ROOT / path).exists()
    assert list(map(str, findings(ROOT / path))) == []


@pytest.mark.parametrize("path", TEXTS)
def test_texts_for_users_read_well(path: str) -> None:
    assert (ROOT / path).exists()
    assert list(map(str, text_findings(ROOT / path))) == []


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("Return the offset.", []),
        ("Of one client.", ["opens with 'Of'"]),
        ("What a client may do.", ["opens with 'What'"]),
        ("The `one` that waits.", []),
        ("Stop the thread before he sends.", ["says 'he'"]),
        ("Separate names, parted by commas.", ["says 'parted by', not 'separated by'"]),
        ("Say which one has not been sent.", []),
        ("Say which one has not\n    a name.", ["says 'has not', not 'does not have'"]),
        ("Send " + "word " * 41 + "now. Short.", ["has a sentence of 43 words, Send word word word word word ..."]),
    ],
)
def test_docstrings(folder: Path, text: str, reasons: list[str]) -> None:
    (folder / "a.py").write_text(f'def f() -> None:\n    """{text}"""\n')
    assert [found.reason for found in findings(folder)] == reasons


def test_attributes_errors_and_helps_are_read(folder: Path) -> None:
    lines = [
        'LIMIT = 3\n"""Of a read."""\n',
        'print("what befalls it")\n',
        'raise ValueError(f"{1} befalls it")\n',
        'f(help="his own")\n',
    ]
    (folder / "a.py").write_text("".join(lines))
    assert [(found.text.line, found.reason) for found in findings(folder)] == [
        (2, "opens with 'Of'"),
        (4, "says 'befalls', not 'happens to'"),
        (5, "says 'his'"),
    ]


def test_every_string_of_three_words_is_a_text_for_users(folder: Path) -> None:
    lines = [
        '"""A store that is no store."""\n',
        'WORDS = {1: "queues made anew", 2: "look at"}\n',
        'say(f"{1} is no number" if bad else f"there is no {2}")\n',
        'QUERY = "SELECT figures FROM t"\n',
        'limit = option("limit", 3, "how many there are", low="what befalls its end")\n',
        'click(help="Whether it can be sent.")\n',
    ]
    (folder / "a.py").write_text("".join(lines))
    assert [(found.text.line, found.reason) for found in text_findings(folder)] == [
        (2, "says 'anew', not 'again'"),
        (3, "says 'is no', not 'is not a'"),
        (5, "says 'befalls', not 'happens to'"),
        (6, "opens with 'Whether'"),
    ]


def test_pages_are_read_without_their_code(folder: Path) -> None:
    (folder / "a.md").write_text("# T\n\n```text\nhis own\n```\n\n`his` is fine.\n\n| a | what befalls sends |\n")
    assert [(found.text.line, found.reason) for found in findings(folder)] == [(9, "says 'befalls', not 'happens to'")]


def test_names_of_several_classes() -> None:
    """The three faces have one name for one thing."""
    assert {"twisted_mq/aio/producer.py", "twisted_mq/blocking/producer.py"} <= set(classes_of_one_name()["Producer"])
