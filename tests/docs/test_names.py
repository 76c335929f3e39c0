"""Names on pages exist: files and folders, make targets, commands, links; the tree of CONTRIBUTING.md is correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import FRAGMENTS
from tests.docs.blocks import PAGES, ROOT
from twisted_mq.cli.admin.registry import served, sub_commands

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
LARGEST_README = 10_000
SOURCES = ("protocol", "storage", "twisted_mq", "spark", "interop", "tests", "docs")
NO_NOUNS = {"__pycache__", "protocol", "storage", "spark"}
"""Folders of twisted_mq that the tree does not list: links to the folders at the top have their own lines."""


def everywhere(pattern: str) -> list[str]:
    """Return the matches of a pattern on all pages, each once."""
    return sorted({found for page in PAGES for found in re.findall(pattern, page.read_text(), re.M)})


def test_readme_is_short() -> None:
    assert len(README.encode()) <= LARGEST_README


def test_readme_counts_the_commands_of_mqadmin() -> None:
    (counts,) = re.findall(r"runs (\d+) of its (\d+) commands", README)
    assert tuple(map(int, counts)) == (len(served()), len(sub_commands()))


@pytest.mark.parametrize("path", everywhere(rf"`((?:{'|'.join(SOURCES)})/[\w./-]*)`"))
def test_named_file_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", everywhere(r"`(test_\w+\.py)` *[|,]"))
def test_named_test_exists(name: str) -> None:
    assert (ROOT / "interop" / name).is_file()


@pytest.mark.parametrize("module", everywhere(r"python -m (tests[\w.]+)"))
def test_named_module_exists(module: str) -> None:
    path = ROOT / module.replace(".", "/")
    assert path.is_dir() or path.with_suffix(".py").is_file()


@pytest.mark.parametrize("target", everywhere(r"`make ([\w-]+)`|^make ([\w-]+)"))
def test_make_target_exists(target: tuple[str, str]) -> None:
    assert re.search(rf"^{''.join(target)}:", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize(("path", "words"), re.findall(r"^\| `([\w/]+\.py)` \| ([^|]+) \|", CONTRIBUTING, re.M))
def test_what_the_first_hour_shows_is_there(path: str, words: str) -> None:
    source = (ROOT / path).read_text()
    assert [name for name in re.findall(r"`(\w+)`", words) if not re.search(rf"\b{name}\b", source)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_included_fragments_are_made(page: Path) -> None:
    included = re.findall(r"\{include\} \.\./generated/(\S+)", page.read_text())
    assert set(included) <= set(FRAGMENTS)


def test_every_fragment_is_shown() -> None:
    assert set(everywhere(r"\{include\} \.\./generated/(\S+)")) == set(FRAGMENTS)


@pytest.mark.parametrize(
    "place", ["protocol", "storage", "twisted_mq", "twisted_mq/broker", "twisted_mq/client", "spark"]
)
def test_the_tree_is_drawn_as_it_is(place: str) -> None:
    lines = re.search(rf"^ *{place.rpartition('/')[2]}/  (.*\n(?: {{16}}.*\n)*)", CONTRIBUTING, re.M)
    assert lines is not None
    there = {path.name for path in (ROOT / place).iterdir() if path.is_dir()} - NO_NOUNS
    assert set(re.findall(r"\b([a-z_0-9]{2,})/", lines[1])) == there


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "how-to"], ids=lambda page: page.stem)
def test_how_to_page_starts_with_code(page: Path) -> None:
    """A block of code is before the second heading."""
    begin = "".join(re.split(r"^## ", page.read_text(), flags=re.M)[:2])
    assert "\n```" in begin
