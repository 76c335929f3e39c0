"""Each place that makes code from text, or uses a private part of a library, is on the page of shortcuts, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "shortcuts.md"
PACKAGES = ("protocol", "storage", "spark", "twisted_mq")
LISTED = re.compile(r"^\| `([\w/]+\.py)` \|", re.M)
PRIVATE = {"_tempDataBuffer"}
"""Attributes of Twisted's transports."""


def is_shortcut(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="eval" | "exec")):
            return True
        case ast.Attribute(attr=name):
            return name in PRIVATE
        case ast.Import(names=names):
            return any(one.name == "ctypes" for one in names)
        case ast.ImportFrom(module="concurrent.futures._base" | "concurrent.futures.thread"):
            return True
        case ast.ClassDef(bases=bases):
            return any(ast.unparse(base).startswith("selectors.") for base in bases)
    return False


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        folder = ROOT / package
        yield from (path for path in sorted(folder.rglob("*.py")) if not _is_linked(path))


def _is_linked(path: Path) -> bool:
    return any(parent.is_symlink() for parent in path.parents)


def test_the_page_names_the_shortcuts_and_no_other_files() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if any(map(is_shortcut, ast.walk(ast.parse(path.read_text()))))
    }
    assert found == {*LISTED.findall(PAGE.read_text())}
