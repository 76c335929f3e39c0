"""Supports importing this project from the archive that `mq spark pack` writes.

Python imports no compiled modules from archives: next to each of them is a stub of its name, which is Python and replaces
itself by the compiled module.
"""

from __future__ import annotations

import os
import pickle
import sys
import sysconfig
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from zipimport import zipimporter

STUB = f"from {__name__} import load\n\nload(__spec__)\n"


def load(stub: ModuleSpec) -> None:
    """Load a compiled module for its stub. Raises ImportError if the archive is for another Python or machine."""
    archive = stub.loader
    assert isinstance(archive, zipimporter)
    stem = os.path.join(archive.archive, *stub.name.split("."))
    for suffix in EXTENSION_SUFFIXES:
        try:
            content = archive.get_data(stem + suffix)
        except OSError:
            continue
        _replace(stub.name, content, suffix)
        return
    raise ImportError(
        f"{archive.archive} has {stub.name} for another Python or machine than {sys.executable}, Python "
        f"{sysconfig.get_python_version()} on {sysconfig.get_platform()}: run `mq spark pack` with a Python like that of "
        f"the workers, or install {stub.name.partition('.')[0]} on them"
    )


def archive_of(module: str) -> str | None:
    """Return the archive that a module was imported from; None for an installed module."""
    spec = sys.modules[module].__spec__
    return spec.loader.archive if spec is not None and isinstance(spec.loader, zipimporter) else None


def restore(archive: str, pickled: bytes) -> object:
    """Return an object of a pickled class and state, which need this archive on the path. Pickle it by value itself."""
    if archive not in sys.path:
        sys.path.insert(1, archive)
    kind, state = pickle.loads(pickled)
    made: object = kind.__new__(kind)
    vars(made).update(state)
    return made


def _replace(name: str, content: bytes, suffix: str) -> None:
    """Write a shared object to a file: the system loads it only from one, and does not need it afterwards."""
    with tempfile.NamedTemporaryFile(suffix=suffix) as copy:
        copy.write(content)
        copy.flush()
        spec = spec_from_file_location(name, copy.name)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
