"""Tables and pictures of the byte layouts: every construct.Struct that a module of protocol/layouts or protocol/wire declares.

What the fields are for, a module's docstring says.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import attrs
import construct

import twisted_mq.protocol.layouts
import twisted_mq.protocol.wire
from docs.generate.pictures import Box, draw
from docs.generate.tables import table
from twisted_mq.protocol.layouts.derive import Field, LayoutError, Run, derive_runs
from twisted_mq.protocol.layouts.record import MAGIC_V1

HEAD = ("offset", "size", "field", "kind")
PACKAGES = (twisted_mq.protocol.layouts, twisted_mq.protocol.wire)
LARGE = 1 << 30
"""A length that is no part of another number."""
KNOWN: dict[str, dict[str, int]] = {"MESSAGE": {"sys_flag": 0, "magic": MAGIC_V1}}
"""Values that a layout's sizes hang on: tables and pictures show this case."""


@attrs.frozen
class Row:
    """A field; `offset` and `size` are None if they differ from one record to the next."""

    offset: int | None
    size: int | None
    name: str
    kind: str


def tables() -> str:
    """A section for each module, in it a table and a picture of each layout."""
    return "\n".join(_section(module) for module in modules())


def pictures() -> dict[str, str]:
    """File name -> SVG."""
    return {
        picture_name(name): draw(name, [Box(row.offset, row.size, row.name) for row in rows(name, layout)])
        for module in modules()
        for name, layout in declared(module)
    }


def picture_name(name: str) -> str:
    return f"layout-{name.lower().replace('_', '-')}.svg"


def declared(module: ModuleType) -> list[tuple[str, construct.Struct]]:
    """The layouts of a module by their names, in its order; not those that it imports."""
    source = inspect.getsource(module)
    return [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, construct.Struct) and not name.startswith("_") and f"\n{name} = " in source
    ]


def rows(name: str, layout: construct.Struct) -> list[Row]:
    """The fields of a layout: the runs that are derived from it, then what construct alone can read."""
    subcons = {subcon.name: subcon for subcon in layout.subcons}
    found: list[Row] = []
    with contextlib.suppress(LayoutError):
        for run in derive_runs(layout, **KNOWN.get(name, {})):
            place = 0 if not found else None
            found += (_of_run(field, place) for field in run.fields if field.size)
            if run.follower:
                found.append(_behind(run, subcons[run.follower], place))
    shown = {row.name for row in found}
    stored = (left for left, subcon in subcons.items() if not isinstance(subcon.subcon, construct.Computed))
    return found + [Row(None, None, left, "bytes") for left in stored if left not in shown]


def _of_run(field: Field, place: int | None) -> Row:
    return Row(None if place is None else field.offset, field.size, field.name, _kind(field.format))


def _behind(run: Run, subcon: construct.Construct, place: int | None) -> Row:
    """The field behind a run, which is as long as the run's last number says, or a part of that number."""
    length = run.fields[-1].name
    is_all = _bytes_of(subcon).length(construct.Container({length: LARGE})) == LARGE
    return Row(None if place is None else run.size, None, subcon.name, f"`{length}` bytes" if is_all else "bytes")


def _bytes_of(subcon: construct.Construct) -> construct.Construct:
    while not isinstance(subcon, construct.Bytes):
        subcon = subcon.subcon
    return subcon


def modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
            module = importlib.import_module(f"{package.__name__}.{found.name}")
            if declared(module):
                yield module


def _section(module: ModuleType) -> str:
    words = inspect.getdoc(module) or ""
    title = module.__name__.rpartition(".")[2].replace("_", " ")
    parts = [f"## {title[0].upper()}{title[1:]}", f"`{_path(module)}`", words]
    for name, layout in declared(module):
        parts += [f"### {name}", _table(name, layout), f"![The fields of {name} in bytes]({picture_name(name)})"]
    return "\n\n".join(parts) + "\n"


def _path(module: ModuleType) -> str:
    return module.__name__.removeprefix("twisted_mq.").replace(".", "/") + ".py"


def _table(name: str, layout: construct.Struct) -> str:
    lines = []
    for row in rows(name, layout):
        place = (".." if number is None else number for number in (row.offset, row.size))
        lines.append((*place, f"`{row.name}`", row.kind))
    return table(HEAD, lines)


def _kind(format: str) -> str:
    if format.endswith("s"):
        return "bytes"
    return "signed" if format.islower() else "unsigned"
