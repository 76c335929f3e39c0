"""The account of the lines of the services under test that no seed reached.

A trace function notes each line once: a function all of whose lines were seen costs no more than its calls. So a run with an
account takes about twice as long, and is the same world to the byte.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import attrs

SERVICES = (
    "broker/clients",
    "broker/ha",
    "broker/ordering",
    "broker/pop",
    "broker/processors",
    "broker/schedule",
    "broker/topics",
    "broker/transaction",
    "client/consuming",
    "client/ordered",
    "client/producing",
    "coordination",
    "namesrv",
    "ordering",
    "storage/appending",
    "storage/flushing",
    "storage/log",
    "storage/queues",
    "storage/recovery",
    "storage/replica",
    "storage/timer",
)
"""Folders of the package, and what lies below them."""
FILES = ("storage/message_store.py", "storage/retention.py", "broker/retention_service.py", "broker/long_polling.py")

Line = tuple[str, int]
"""A file, by its path in the package, and a line of it."""


def root() -> str:
    """The installed package's folder."""
    spec = importlib.util.find_spec("twisted_mq")
    assert spec is not None and spec.submodule_search_locations
    return os.path.realpath(next(iter(spec.submodule_search_locations)))


def _storage() -> str:
    spec = importlib.util.find_spec("twisted_mq.storage")
    assert spec is not None and spec.submodule_search_locations
    return os.path.realpath(next(iter(spec.submodule_search_locations)))


def sources() -> Iterator[tuple[str, str]]:
    """(path in the package, path on disk) of the files under test."""
    for folder in SERVICES:
        top = _place(folder)
        for directory, _, names in sorted(os.walk(top)):
            for name in sorted(names):
                if name.endswith(".py"):
                    path = os.path.join(directory, name)
                    yield os.path.join(folder, os.path.relpath(path, top)), path
    for file in FILES:
        yield file, _place(file)


def _place(name: str) -> str:
    """A folder or file of the package; storage lies beside it in a checkout."""
    first, _, rest = name.partition("/")
    return os.path.join(_storage(), rest) if first == "storage" else os.path.join(root(), name)


def lines_of(path: str) -> dict[int, str]:
    """The lines of a file that are in functions, each with the function's name."""
    with open(path, "rb") as file:
        module = compile(file.read(), path, "exec")
    return {line: code.co_qualname for code in _functions(module) for line in _executable(code)}


def _functions(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_flags & 0x02:  # CO_NEWLOCALS: a function, and no class's body
                yield part
            yield from _functions(part)


def _executable(code: CodeType) -> set[int]:
    """Without the first line, which is reached by each call."""
    return {line for *_, line in code.co_lines() if line is not None} - {code.co_firstlineno}


@attrs.define
class Account:
    """The lines that the code reaches which runs between `start` and `stop`, in this process."""

    _names: dict[str, str] = attrs.field(init=False)
    _left: dict[CodeType, tuple[str, set[int]]] = attrs.field(factory=dict)
    _new: list[Line] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._names = {path: name for name, path in sources()}

    def start(self) -> None:
        sys.settrace(self._call)

    def stop(self) -> list[Line]:
        """Stop the account. Return the lines that were reached for the first time since the process began."""
        sys.settrace(None)
        new, self._new = self._new, []
        return new

    def _call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        found = self._left.get(frame.f_code)
        if found is None:
            name = self._names.get(os.path.realpath(frame.f_code.co_filename), "")
            found = self._left[frame.f_code] = name, _executable(frame.f_code) if name else set()
        return self._line if found[1] else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if event != "line":
            return self._line
        name, left = self._left[frame.f_code]
        if frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self._new.append((name, frame.f_lineno))
        return self._line if left else None


def report(reached: Iterable[Line]) -> Iterator[str]:
    """By file: how many lines of functions were reached, and which functions were not, or which of their lines."""
    by_file: dict[str, set[int]] = {}
    for name, line in reached:
        by_file.setdefault(name, set()).add(line)
    total = missed_total = 0
    for name, path in sources():
        lines = lines_of(path)
        missed = sorted(set(lines) - by_file.get(name, set()))
        total += len(lines)
        missed_total += len(missed)
        if lines:
            yield f"{name}: {len(lines) - len(missed)} of {len(lines)}"
        for function in dict.fromkeys(lines[line] for line in missed):
            mine = [line for line in missed if lines[line] == function]
            whole = len(mine) == sum(one == function for one in lines.values())
            yield f"    {function}: {'never' if whole else ' '.join(map(str, mine))}"
    yield f"{total - missed_total:,} of {total:,} lines reached, {100 * (total - missed_total) / max(total, 1):.1f} %"
