"""Each byte layout has one home, below `protocol/`: elsewhere nothing takes bytes apart or puts them together by itself.

Looked for in the source of everything else: the module `struct`, formats as struct and numpy have them with a byte order,
`to_bytes`, `from_bytes`, `memoryview.cast`, and numpy records listed by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PACKAGES = ("storage", "spark", "twisted_mq")
LINKS = ("twisted_mq/protocol/", "twisted_mq/storage/", "twisted_mq/spark/")

NO_LAYOUT = {
    "storage/files/system_calls.py": "the kernel's struct flock, which fcntl takes",
}
"""Formats that are not on a wire or disk."""

WITH_BYTE_ORDER = re.compile(r"[<>=!@](\d*[?xcbBhHiIlLqQnNefdspPuVSU])+\d*")
STRUCT_LETTERS = re.compile(r"@?[?cbBhHiIlLqQnNefdP]")


def sources() -> list[Path]:
    found = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return [path for path in found if not path.relative_to(ROOT).as_posix().startswith(LINKS)]


def byte_work(source: str) -> list[tuple[int, str]]:
    """(line, what it is) of everything that knows a layout."""
    nodes = list(ast.walk(ast.parse(source)))
    of_texts = {id(part) for node in nodes if isinstance(node, ast.FormattedValue) for part in _parts(node.format_spec)}
    return sorted((node.lineno, found) for node in nodes if id(node) not in of_texts for found in _knows(node))


def _parts(format_spec: ast.expr | None) -> Iterator[ast.AST]:
    """Yield the parts of a format of a value in a text, such as `>16d`."""
    return ast.walk(format_spec) if format_spec is not None else iter(())


def _knows(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import() if any(one.name == "struct" for one in node.names):
            yield "imports struct"
        case ast.ImportFrom(module="struct"):
            yield "imports from struct"
        case ast.Attribute(attr="to_bytes" | "from_bytes"):
            yield f"uses {node.attr}"
        case ast.Constant(value=str()) if WITH_BYTE_ORDER.fullmatch(node.value):
            yield f"has the format {node.value!r}"
        case ast.Call(func=ast.Attribute(attr="cast"), args=[ast.Constant(value=str() as kind), *_]):
            if STRUCT_LETTERS.fullmatch(kind):
                yield f"casts to {kind!r}"
        case ast.Call(func=ast.Attribute(attr="dtype"), args=[ast.List() | ast.Dict(), *_]):
            yield "lists a numpy record"


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_outside_of_protocol_knows_a_layout(package: str) -> None:
    found = []
    for path in sources():
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(f"{package}/") and place not in NO_LAYOUT:
            found += [f"{place}:{line} {problem}" for line, problem in byte_work(path.read_text())]
    assert found == []


def test_what_is_excepted_is_there_and_needs_it() -> None:
    for place in NO_LAYOUT:
        assert byte_work((ROOT / place).read_text())


def test_byte_work_would_be_found() -> None:
    source = """
import struct
from struct import unpack
size = int.from_bytes(data[:4], "big")
mark = magic.to_bytes(4, "big")
sizes = view.cast("i")[2::5]
kind = np.dtype([("size", np.int32)])
table = np.frombuffer(data, ">i4")
f"{size:>16d}", column.cast("int"), typing.cast(int, value), array.cast(kind), "<svg", ">= 3", np.dtype("u1")
"""
    assert byte_work(source) == [
        (2, "imports struct"),
        (3, "imports from struct"),
        (4, "uses from_bytes"),
        (5, "uses to_bytes"),
        (6, "casts to 'i'"),
        (7, "lists a numpy record"),
        (8, "has the format '>i4'"),
    ]
