"""An archive with everything that Spark's workers import from this project, except numpy, pandas and pyarrow.

Spark adds it to the path of drivers and workers that get it with --py-files, or as an artifact of a Connect session.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from twisted_mq.packed import STUB

ON_WORKERS = ("numpy", "pandas", "pyarrow")
"""Packages that workers already have: Spark itself passes batches to Python with them."""

_PARTS = ("access", "admin", "cli", "config", "protocol", "routing", "spark", "storage")
"""Directories of twisted_mq; with `cli` and its imports a driver can run jobs too."""
_PACKAGES = (
    "pyspark_rocketmq", "attr", "attrs", "click", "construct", "dpkt", "lz4", "msgspec", "rich",
    "rocketmq_twisted_speed", "zstandard",
)  # fmt: skip
"""Packages that are added if installed; those with compiled modules are for the machine and version of the Python that packs."""
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyi", "_cffi.*", "backend_cffi.py")


def write_pack(file: str) -> None:
    """Write the archive; an existing file is replaced atomically."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        _copy(tree)
        for path in tree.rglob(f"*{EXTENSION_SUFFIXES[-1]}"):
            path.with_name(f"{path.name.partition('.')[0]}.py").write_text(STUB)
        compileall.compile_dir(
            tree, quiet=1, legacy=True, stripdir=folder, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )
        made = shutil.make_archive(f"{folder}/pack", "zip", tree)
        shutil.move(made, f"{file}.new")
    os.replace(f"{file}.new", file)


def bring_pack(session: SparkSession) -> None:
    """Send the archive to the workers of a Connect session."""
    with tempfile.TemporaryDirectory() as folder:
        write_pack(f"{folder}/rocketmq.zip")
        session.addArtifacts(f"{folder}/rocketmq.zip", pyfile=True)


def _copy(tree: Path) -> None:
    for name in ("twisted_mq", *(f"twisted_mq.{part}" for part in _PARTS), *_PACKAGES):
        found = find_spec(name)
        if found is None or found.origin is None:
            continue
        source, target = Path(found.origin).parent, tree.joinpath(*name.split("."))
        if name != "twisted_mq":
            shutil.copytree(source, target, ignore=_LEFT_OUT)
            continue
        target.mkdir(parents=True)
        for path in source.glob("*.py"):
            shutil.copy(path, target)
