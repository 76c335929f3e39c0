"""Public names of a package whose modules are loaded when a name is first used: an import costs what is used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def homes(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name. `modules` has the names of each module, separated by spaces."""
    return {name: module for module, names in modules.items() for name in names.split()}


def on_first_use(package: str, home: Mapping[str, str]) -> Callable[[str], object]:
    """Return the package's `__getattr__`, which is called once for each name."""

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return load
