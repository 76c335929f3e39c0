"""The archive for workers, in a Python that has nothing else of this project. What a cluster does with it: interop."""

from __future__ import annotations

import json
import subprocess
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from interop.peers.spark_cluster import lean_python
from tests.support.forms import compiled_forms
from twisted_mq.spark.pack import ON_WORKERS, write_pack


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(lean_python(tmp_path_factory.mktemp("python")))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pack") / "rocketmq.zip"
    write_pack(str(file))
    return file


def run(python: str, pack: Path, program: str) -> subprocess.CompletedProcess[str]:
    """With the archive on its path, as Spark puts it there."""
    lines = f"import json, sys\nsys.path.insert(1, {str(pack)!r})\n{program}"
    return subprocess.run([python, "-c", lines], cwd=pack.parent, env={}, capture_output=True, text=True, check=False)


def said(python: str, pack: Path, program: str) -> Any:
    done = run(python, pack, program)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_compiled_modules_are_loaded_from_the_archive(python: str, pack: Path) -> None:
    program = (
        "from twisted_mq.protocol.messages.compression import CompressionType, compress, decompress\n"
        "kinds = [decompress(compress(b'body' * 99, kind), kind) == b'body' * 99 for kind in CompressionType]\n"
        "import lz4, msgspec, zstandard\n"
        "print(json.dumps([kinds, lz4.__file__, msgspec.json.encode([1]).decode(), zstandard.backend]))"
    )
    kinds, lz4_file, encoded, backend = said(python, pack, program)
    assert (kinds, encoded, backend) == ([True] * 3, "[1]", "cext")
    assert lz4_file.startswith(str(pack))


def test_workers_have_the_compiled_walk_if_it_is_installed_where_the_archive_is_made(python: str, pack: Path) -> None:
    compiled_forms()
    program = (
        "from twisted_mq.protocol.layouts import compiled as c\n"
        "print(json.dumps([c.forms != c.PLAIN, len(c.forms.crc32s(b'body', bytes(8), bytes(8)))]))"
    )
    assert said(python, pack, program) == [True, 4]


def test_a_task_that_reads_a_store_imports_neither_commands_nor_a_connection(python: str, pack: Path) -> None:
    program = "import twisted_mq.spark.source.store_reader\nprint(json.dumps(sorted(sys.modules)))"
    loaded = set(said(python, pack, program))
    assert {"attrs", "construct", *ON_WORKERS} - {"pandas"} <= loaded
    unneeded = ("click", "rich", "lz4", "zstandard", "msgspec", "twisted", "twisted_mq.cli", "twisted_mq.spark.live")
    assert loaded.isdisjoint(unneeded)


def test_a_driver_has_the_commands_of_jobs(python: str, pack: Path) -> None:
    program = (
        "import twisted_mq.cli.mq, twisted_mq.cli.spark.commands as commands\nprint(json.dumps(commands.__file__))"
    )
    assert said(python, pack, program).startswith(str(pack))


def test_an_archive_for_another_python_says_so(python: str, pack: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(pack) as whole, zipfile.ZipFile(other, "w") as odd:
        for name in whole.namelist():
            renamed = name.replace(EXTENSION_SUFFIXES[0], ".cpython-399-vax.so")
            odd.writestr(renamed, whole.read(name))
    done = run(python, other, "import twisted_mq.spark.live.connection")
    assert done.stderr.splitlines()[-1].startswith(
        f"ImportError: {other} has msgspec._core for another Python or machine than {python}, Python 3."
    )
    assert "run `mq spark pack` with a Python like that of the workers, or install msgspec on them" in done.stderr


def test_a_python_without_spark_s_own_needs_says_so(pack: Path, tmp_path: Path) -> None:
    bare = run(str(lean_python(tmp_path / "bare", ())), pack, "import twisted_mq.spark")
    assert bare.stderr.splitlines()[-1] == (
        "twisted_mq.extras.MissingExtra: twisted_mq.spark needs numpy, pyarrow, pyspark: pip install "
        '"rocketmq-twisted[spark]"'
    )
