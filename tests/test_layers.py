"""The layers: protocol <- storage <- what runs on Twisted; spark beside it, on protocol and storage's readers.

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
    | {"selectors", "select", "ssl", "asyncio", "tempfile", "twisted"},
    "storage": {"twisted", "asyncio", "socket"},
    # lines go to twisted_mq.logs
    "twisted_mq": {"twisted.logger.Logger", "twisted.python.log"},
    "spark": {"twisted", "asyncio"},
    "twisted_mq/broker": {"twisted_mq.client"},
    "twisted_mq/client": {"twisted_mq.broker", "twisted_mq.aio", "twisted_mq.blocking"},
    "twisted_mq/aio": {"twisted_mq.broker", "twisted_mq.blocking", "twisted.internet.reactor"},
    "twisted_mq/blocking": {"twisted_mq.broker", "twisted.internet.reactor"},
    "twisted_mq/remoting": {"twisted_mq.broker", "twisted_mq.client", "twisted_mq.namesrv"},
    "twisted_mq/routing": {"twisted_mq.broker", "twisted_mq.client", "twisted_mq.namesrv"},
    "twisted_mq/namesrv": {"twisted_mq.broker", "twisted_mq.client"},
    "twisted_mq/proxy": {"twisted_mq.broker", "twisted_mq.namesrv", "twisted_mq.aio", "twisted_mq.blocking"},
    "twisted_mq/proxy/grpc": {"twisted_mq.client", "twisted_mq.proxy.messages"},
}
"""Folder -> modules that none of its files imports."""

PACKAGES = {
    "protocol": {"protocol"},
    "storage": {"protocol", "storage"},
    "spark": {"protocol", "storage", "spark", "extras", "freed_memory", "packed"},
}
"""Folder at the top -> which parts of `twisted_mq` it may import; the part of a folder is `twisted_mq.<folder>`."""

CIRCLES = ["protocol", "storage", "spark", "twisted_mq", "twisted_mq/broker", "twisted_mq/client", "twisted_mq/proxy"]
"""Folders whose own folders and files form no circle of imports."""

HANDED_ON = {("twisted_mq.client", "twisted_mq.admin"), ("twisted_mq.client.values", "twisted_mq.admin")}
"""Face of a folder -> the folder of which it hands names on, loaded when they are first asked for."""

SPARK_READS = (
    "twisted_mq.storage.errors",
    "twisted_mq.storage.files.mapped_log",
    "twisted_mq.storage.files.paths",
    "twisted_mq.storage.columns",
    "twisted_mq.storage.files.files_at_rest",
    "twisted_mq.storage.tools.index_tools",
)
"""Modules of storage that spark may import: names, files and errors, never a running store."""

STARTED_WITHOUT = {
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "matplotlib",
    "klein",
    "jinja2",
    "rich",
    "click",
    "sqlglot",
    "yaml",
    "OpenSSL",
    "cryptography",
    "service_identity",
    "kazoo",
    "h2",
    "hpack",
    "hyperframe",
    "google",
}
"""Too large for a daemon: they cost start time or memory."""

COLUMNS = {
    "protocol/columns.py",
    "protocol/text/java_hash_columns.py",
    "protocol/layouts/batch_records.py",
    "protocol/layouts/record_columns.py",
    "protocol/layouts/index_columns.py",
    "protocol/layouts/queue_columns.py",
    "storage/columns",
    "storage/queues/entry_columns.py",
    "storage/queues/queue_files.py",
    "storage/index/index_writer.py",
    "storage/index/key_collector.py",
}
"""Modules with numpy that every broker loads for batches and the index: it costs 0.1 s and 10 MiB, and saves 2 us per message."""

LOADED_LATER = (
    "twisted_mq.broker.filter.selector_",
    "twisted_mq.coordination.zookeeper",
    "twisted_mq.encryption.connection",
    "twisted_mq.encryption.contexts",
    "twisted_mq.proxy.",
    "twisted_mq.broker.grpc_port",
)
"""Modules that the first SQL92 expression loads, with sqlglot; that the first ordered topic on ZooKeeper loads, with kazoo;
that encryption loads, with OpenSSL; that a gRPC port loads, with protobuf."""

REACTOR_AT_IMPORT = {"twisted_mq/cli"}
"""Folders whose modules may import the reactor at their top."""


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def installed_name(path: Path) -> str:
    """A file's full name: the folders at the top are installed inside `twisted_mq`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return name if parts[0] == "twisted_mq" else f"twisted_mq.{name}"


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[tuple[str, int]]:
    """Full names of what a file imports, with their lines; relative imports become absolute."""
    tree = ast.parse(path.read_text(), str(path))
    package = installed_name(path.parent / "__init__.py").split(".")
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, node.lineno) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield from ((f"{module}.{one.name}", node.lineno) for one in node.names)


def is_within(name: str, module: str) -> bool:
    """Return True if a full name is a module or is in it."""
    return name == module or name.startswith(f"{module}.")


def violations(package: str) -> list[str]:
    found = []
    for path in modules(package):
        for name, line in imports(path):
            part = name.split(".")[1] if name.startswith("twisted_mq.") else None
            above = part is not None and part not in PACKAGES.get(package, {part})
            if above or any(is_within(name, module) for module in FORBIDDEN[package]):
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    return found


def module_imports(package: str) -> dict[str, set[str]]:
    """Module -> the modules of the same package that it imports."""
    files = {installed_name(path): path for path in modules(package)}
    edges: dict[str, set[str]] = {}
    for module, path in files.items():
        names = {name if name in files else name.rpartition(".")[0] for name, _ in imports(path)}
        edges[module] = {name for name in names if name in files and name != module}
    return edges


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Circles of a graph, each as its nodes; what reaches itself."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for node in edges.get(waiting.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    waiting.append(node)
        return seen

    reach = {node: reached(node) for node in edges}
    groups = {frozenset(other for other in reach[node] if node in reach.get(other, ())) for node in edges}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def folder_imports(package: str) -> dict[str, set[str]]:
    """The same between the folders and files directly below the package."""
    root = installed_name(ROOT / package / "__init__.py")

    def child(module: str) -> str:
        return module.removeprefix(root).split(".")[1] if module != root else root

    edges: dict[str, set[str]] = {}
    for module, names in module_imports(package).items():
        taken = {name for name in names if (module, name.rpartition(".")[0]) not in HANDED_ON}
        edges.setdefault(child(module), set()).update(child(name) for name in taken if child(name) != child(module))
    edges.pop(root, None)  # the package's own face hands names on
    return edges


@pytest.mark.parametrize("package", CIRCLES)
def test_folders_of_a_package_import_each_other_in_one_direction(package):
    assert circles(folder_imports(package)) == []


@pytest.mark.parametrize("package", ["protocol", "storage", "spark", "twisted_mq"])
def test_no_files_import_each_other(package):
    assert circles(module_imports(package)) == []


def test_a_circle_would_be_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}}) == [["a", "b", "c"]]


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_no_file_imports_from_a_layer_above_or_a_forbidden_module(package):
    assert modules(package)
    assert violations(package) == []


def test_spark_takes_only_readers_from_storage():
    found = []
    for path in modules("spark"):
        for name, line in imports(path):
            allowed = any(is_within(name, one) for one in SPARK_READS)
            if is_within(name, "twisted_mq.storage") and not allowed:
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert found == []


def test_protocol_never_asks_what_time_it_is():
    """The protocol may compute with dates; callers pass the time."""
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
        place = path.relative_to(ROOT).as_posix()
        without = STARTED_WITHOUT - {"numpy"} if place.startswith(tuple(COLUMNS)) else STARTED_WITHOUT
        for name, line in imports(path, top_level_only=True):
            if name.partition(".")[0] in without or name.startswith(LOADED_LATER):
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert found == []


@pytest.mark.parametrize("daemon", ["twisted_mq.namesrv.tap", "twisted_mq.cli.mqadmin", "twisted_mq.storage.config"])
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
        "import os.path\nfrom twisted.internet import reactor\n"
        "def f():\n    from ..codes import A\n    import time\n    from twisted_mq.storage import config\n"
    )
    (package / "bad.py").write_text(source)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert list(imports(package / "bad.py")) == [
        ("os.path", 1),
        ("twisted.internet.reactor", 2),
        ("twisted_mq.protocol.codes.A", 4),
        ("time", 5),
        ("twisted_mq.storage.config", 6),
    ]
    assert violations("protocol") == [
        "protocol/headers/bad.py:1 imports os.path",
        "protocol/headers/bad.py:2 imports twisted.internet.reactor",
        "protocol/headers/bad.py:5 imports time",
        "protocol/headers/bad.py:6 imports twisted_mq.storage.config",
    ]
