"""Imports the package with another declaration of a layout: `CHANGED_LAYOUT=MESSAGE,queue_id:flag,born_timestamp:store_timestamp`
swaps fields, `MESSAGE,flag=Int64sb` gives one another kind. A plugin for pytest (`-p`). Programs import it first.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

MODULES = {
    "MESSAGE": "twisted_mq.protocol.layouts.record",
    "HEADER": "twisted_mq.protocol.wire.command",
    "FRAME": "twisted_mq.protocol.wire.framing",
    "EXT_FIELD": "twisted_mq.protocol.wire.extfields",
}
"""The layouts that can be changed, and their modules."""
VARIABLE = "CHANGED_LAYOUT"


def changed(source: str, layout: str, changes: list[str]) -> str:
    """Return the module's source with these changes of the layout's declaration."""
    begin = source.index(f"\n{layout} = ")
    end = source.index("\n)\n", begin)
    lines = source[begin:end].split("\n")
    for change in changes:
        name, sign, other = re.split("([:=])", change)
        place = _place(lines, name)
        if sign == ":":
            second = _place(lines, other)
            lines[place], lines[second] = lines[second], lines[place]
        else:
            lines[place] = f'    "{name}" / construct.{other},'
    return source[:begin] + "\n".join(lines) + source[end:]


def _place(lines: list[str], name: str) -> int:
    """Return which line declares a field; the field has a line of its own."""
    (place,) = (place for place, line in enumerate(lines) if line.startswith(f'    "{name}" / '))
    return place


def load(layout: str, *changes: str) -> None:
    """Put the changed module in the place of the one that nobody has imported yet."""
    name = MODULES[layout]
    if name in sys.modules:
        raise RuntimeError(f"{name} is imported already")
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{name} is not there")
    source = changed(Path(spec.origin).read_text(), layout, [*changes])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(source, spec.origin, "exec"), module.__dict__)


if VARIABLE in os.environ:
    load(*os.environ[VARIABLE].split(","))
