"""The house: which packages import which, drawn floor by floor from the imports of all files.

A package is on the floor above the highest package that it imports when it is loaded. Imports inside functions and for type
checkers are left out: they are loaded later, or never.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.generate.tables import table

ROOT = Path(__file__).parents[2]
INSTALLED = "twisted_mq"
TOPS = ("protocol", "storage", "spark")
"""Folders at the top that are installed inside `twisted_mq`."""
WIDTH, HEIGHT, GAP, LETTER = 900, 34, 12, 7.3
"""Sizes in points: the drawing's width, a room's height, the space between rooms, and a letter's width."""


def rooms() -> dict[str, set[str]]:
    """Package -> the packages that its files import when they are loaded."""
    found: dict[str, set[str]] = {}
    for top in (*TOPS, INSTALLED):
        for file in sorted((ROOT / top).rglob("*.py")):
            parts = file.relative_to(ROOT).parts
            if top == INSTALLED and (len(parts) < 3 or parts[1] in TOPS):
                continue  # the links, and single files
            room = parts[0] if top != INSTALLED else parts[1]
            found.setdefault(room, set()).update(_imported(file) - {room})
    return {room: {one for one in below if one in found} for room, below in found.items()}


def floors() -> list[list[str]]:
    """Packages by floor, the lowest first. Raises ValueError if imports form a circle."""
    left, done, result = rooms(), set[str](), list[list[str]]()
    while left:
        floor = sorted(room for room, below in left.items() if below <= done)
        if not floor:
            raise ValueError(f"imports form a circle among {', '.join(sorted(left))}")
        result.append(floor)
        done.update(floor)
        left = {room: below for room, below in left.items() if room not in done}
    return result


def _imported(file: Path) -> set[str]:
    names = set()
    for name in _at_load(ast.parse(file.read_text())):
        parts = name.split(".")
        if parts[0] == INSTALLED and len(parts) > 1:
            names.add(parts[1])
    return names


def _at_load(module: ast.Module) -> Iterator[str]:
    waiting: list[ast.stmt] = list(module.body)
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield from (f"{statement.module}.{one.name}" for one in statement.names)
        elif isinstance(statement, ast.Import):
            yield from (one.name for one in statement.names)
        elif isinstance(statement, ast.Try):
            waiting += statement.body


def table_of_floors() -> str:
    """The picture, and the same as a table: the highest floor first."""
    below = rooms()
    rows = []
    for number, floor in reversed(list(enumerate(floors()))):
        for room in floor:
            rows.append((number, f"`{room}`", ", ".join(f"`{one}`" for one in sorted(below[room])) or "-"))
    picture = (
        "```{image} ../generated/house.svg\n:alt: Packages floor by floor; each imports only from floors below\n```\n"
    )
    return f"{picture}\n{table(('floor', 'package', 'imports from'), rows)}"


def drawing() -> str:
    """The house as SVG, dark on white."""
    storeys = floors()
    height = len(storeys) * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, floor in enumerate(storeys):
        y = height - (number + 1) * (HEIGHT + GAP)
        widths = [len(room) * LETTER + 2 * GAP for room in floor]
        x = (WIDTH - sum(widths) - GAP * (len(floor) - 1)) / 2
        for room, width in zip(floor, widths, strict=True):
            parts.append(f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{HEIGHT}" fill="#eef3fb" stroke="#335"/>')
            parts.append(f'<text x="{x + GAP:g}" y="{y + 22}" fill="#112">{room}</text>')
            x += width + GAP
    return "\n".join([*parts, "</svg>\n"])
