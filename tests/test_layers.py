"""The layers: protocol <- storage <- twisted_mq; spark beside twisted_mq, on protocol and storage's readers.

Imports are read from the source, those inside functions too, so that nothing has to be importable here.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FORBIDDEN = {
    "protocol": {"os", "io", "socket", "time", "random", "threading", "subprocess", "pathlib", "shutil"}
    | {"selectors", "select", "ssl", "asyncio", "tempfile", "twisted", "storage", "twisted_mq", "spark"},
    "storage": {"twisted", "asyncio", "socket", "twisted_mq", "spark"},
    "twisted_mq": {"spark"},
    "spark": {"twisted", "twisted_mq", "asyncio"},
}
"""Package -> top-level modules that none of its files imports."""

SPARK_READS = {"storage.errors", "storage.mapped_log", "storage.paths", "storage.readers", "storage.tools.columns"}
"""What spark may take from storage: names, files and errors, never a running store."""

STARTED_WITHOUT = {"numpy", "pandas", "pyarrow", "pyspark", "matplotlib", "klein", "jinja2", "rich", "click", "sqlglot"}
"""Too large for a daemon: they cost start time or memory."""

COLUMNS = {"protocol/batch_hash.py", "protocol/record_batch.py", "storage/index_writer.py", "storage/key_collector.py"}
"""What every broker writes batches and the index with: numpy takes a tenth of a second and 10 MiB, and spares 2 us a message."""

LOADED_LATER = "twisted_mq.broker.filter.selector_"
"""Modules that the first SQL92 expression loads, with sqlglot."""

REACTOR_AT_IMPORT = {"twisted_mq/cli"}
"""Where a module may import the reactor at its top."""


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[tuple[str, int]]:
    """Full names of what a file imports, with their lines; relative imports become absolute."""
    tree = ast.parse(path.read_text(), str(path))
    package = path.relative_to(ROOT).parent.parts
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, node.lineno) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield from ((f"{module}.{one.name}", node.lineno) for one in node.names)


def violations(package: str) -> list[str]:
    found = []
    for path in modules(package):
        for name, line in imports(path):
            if name.partition(".")[0] in FORBIDDEN[package]:
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    return found


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_no_file_imports_from_a_layer_above_or_a_forbidden_module(package):
    assert modules(package)
    assert violations(package) == []


def test_spark_takes_only_readers_from_storage():
    found = []
    for path in modules("spark"):
        for name, line in imports(path):
            allowed = any(name == one or name.startswith(f"{one}.") for one in SPARK_READS)
            if name.partition(".")[0] == "storage" and not allowed:
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert found == []


def test_protocol_never_asks_what_time_it_is():
    """It may compute with dates; the clock is its callers'."""
    found = []
    for path in modules("protocol"):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} uses {node.attr}")
    assert found == []


@pytest.mark.parametrize("package", ["protocol", "storage", "twisted_mq"])
def test_nothing_heavy_is_imported_at_the_top_of_what_a_daemon_uses(package):
    found = []
    for path in modules(package):
        if {"cli", "console"} & set(path.parts) or "storage/tools/" in path.as_posix():
            continue
        if ".".join(path.relative_to(ROOT).with_suffix("").parts).startswith(LOADED_LATER):
            continue
        without = STARTED_WITHOUT - {"numpy"} if path.relative_to(ROOT).as_posix() in COLUMNS else STARTED_WITHOUT
        for name, line in imports(path, top_level_only=True):
            if name.partition(".")[0] in without or name.startswith(LOADED_LATER):
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert found == []


@pytest.mark.parametrize("daemon", ["twisted_mq.namesrv.tap", "twisted_mq.cli.mqadmin", "storage.config"])
def test_numpy_is_loaded_by_brokers_alone(daemon):
    program = f"import sys, {daemon}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_reactor_is_imported_at_the_top_only_by_commands():
    found = []
    for path in modules("twisted_mq"):
        place = path.relative_to(ROOT)
        if place.parent.as_posix() in REACTOR_AT_IMPORT:
            continue
        for name, line in imports(path, top_level_only=True):
            if name == "twisted.internet.reactor":
                found.append(f"{place}:{line}")
    assert found == []


def test_a_violation_would_be_found(tmp_path, monkeypatch):
    """The walk sees plain, from and relative imports, and those inside functions."""
    package = tmp_path / "protocol" / "headers"
    package.mkdir(parents=True)
    source = (
        "import os.path\nfrom twisted.internet import reactor\ndef f():\n    from ..codes import A\n    import time\n"
    )
    (package / "bad.py").write_text(source)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert list(imports(package / "bad.py")) == [
        ("os.path", 1),
        ("twisted.internet.reactor", 2),
        ("protocol.codes.A", 4),
        ("time", 5),
    ]
    assert violations("protocol") == [
        "protocol/headers/bad.py:1 imports os.path",
        "protocol/headers/bad.py:2 imports twisted.internet.reactor",
        "protocol/headers/bad.py:5 imports time",
    ]
