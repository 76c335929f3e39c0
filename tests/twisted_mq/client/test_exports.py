"""Names of each face: those that type checkers and editors read are those that are loaded when they are first used."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Mapping
from types import ModuleType

import pytest

from twisted_mq import aio, blocking, client
from twisted_mq.client import values

FACES = [client, aio, blocking]


def declared(module: ModuleType) -> dict[str, str]:
    """The module of each name that is imported for type checkers, as `X as X`, which exports it."""
    (block,) = [one for one in ast.parse(inspect.getsource(module)).body if isinstance(one, ast.If)][:1]
    imports = [one for one in block.body if isinstance(one, ast.ImportFrom) and one.module != values.__name__]
    return {name.name: one.module or "" for one in imports for name in one.names if name.asname == name.name}


@pytest.mark.parametrize(
    ("module", "homes"),
    [(values, values.VALUES), *((face, dict(face.HOMES.items() - values.VALUES.items())) for face in FACES)],
    ids=lambda one: one.__name__ if isinstance(one, ModuleType) else "",
)
def test_type_checkers_see_what_is_loaded(module: ModuleType, homes: Mapping[str, str]) -> None:
    assert declared(module) == homes


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_each_name_is_there(face: ModuleType) -> None:
    assert set(values.VALUES) < set(face.__all__) == set(face.HOMES)
    for name, home in face.HOMES.items():
        assert getattr(face, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="has no attribute 'NotThere'"):
        face.NotThere  # noqa: B018
