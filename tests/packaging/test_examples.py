"""The programs of docs/examples, run by an installed wheel against one broker; their twins for Kafka compile."""

from __future__ import annotations

import ast
import doctest
import json
import re
import subprocess
import textwrap
from collections.abc import Iterator
from importlib.metadata import distribution, requires
from pathlib import Path

import attrs
import pytest

from docs.generate.examples import FOLDER, PAGE, SHELVES, TWINS, cells, code, description, file_of, with_table
from tests.packaging.conftest import link_files, wanted
from tests.packaging.daemons import environment

NAMES = [name for names in SHELVES.values() for name in names]
FRAMEWORKS = ("fastapi", "httpx", "flask", "django", "celery", "pytest", "pytest-asyncio")
COMMAND = re.compile(r"^ *\$ (?P<command>.+)\n(?P<printed>(?:.+\n)*)", re.MULTILINE)
SAYS = doctest.OutputChecker()
NOTEBOOK = """\
import ast, asyncio, inspect, json, sys

async def main():
    names = {}
    for cell in json.load(open(sys.argv[1])):
        done = eval(compile(cell, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.isawaitable(done):
            await done

asyncio.run(main())
"""
"""Runs the cells of a notebook one after the other on one running loop, as Jupyter does."""


@attrs.frozen
class Reader:
    """A user who installed the wheel and the frameworks."""

    python: str
    packages: Path
    name_server: str
    folder: Path

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        variables = environment(self.folder) | {"PYTHONPATH": str(self.packages), "NAMESRV_ADDR": self.name_server}
        return subprocess.run(
            [self.python, *command], cwd=self.folder, env=variables, capture_output=True, text=True, timeout=120
        )


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the frameworks and what they need."""
    folder = tmp_path_factory.mktemp("frameworks")
    waiting, found = list(FRAMEWORKS), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            link_files(distribution(name), folder)
            waiting += [one.name for one in wanted(requires(name), "")]
    return folder


@pytest.fixture(scope="module")
def name_server(installed_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a name server whose broker runs from the wheel."""
    folder = tmp_path_factory.mktemp("servers")
    command = [str(Path(installed_python).parent / "mq"), "up", "--temporary", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["namesrv"]
        finally:
            server.terminate()
    assert server.returncode == 0


@pytest.fixture
def reader(installed_python: str, packages: Path, name_server: str, tmp_path: Path) -> Reader:
    return Reader(installed_python, packages, name_server, tmp_path)


def command_of(name: str, folder: Path) -> tuple[list[str], str]:
    """Return the command of a program, and its output, from its description."""
    file = file_of(FOLDER, name)
    said = COMMAND.search(description(file) + "\n")
    assert said is not None, f"{file} does not say how it is started"
    printed = textwrap.dedent(said["printed"])
    if file.suffix == ".ipynb":
        (folder / "cells.json").write_text(json.dumps(cells(file)))
        return ["-c", NOTEBOOK, "cells.json"], printed
    (folder / file.name).write_text(file.read_text())
    program, *arguments = said["command"].split()
    modules = {"python": [], "pytest": ["-m", "pytest"], "trial": ["-m", "twisted.trial"]}
    return [*modules[program], *arguments], printed


@pytest.mark.parametrize("name", NAMES)
def test_program_runs_and_prints_what_it_says(reader: Reader, name: str) -> None:
    command, printed = command_of(name, reader.folder)
    done = reader.run(command)
    assert done.returncode == 0, done.stdout + done.stderr
    if printed:
        assert SAYS.check_output(printed, done.stdout, doctest.ELLIPSIS), f"{name} printed:\n{done.stdout}"


def test_a_wrong_line_is_noticed() -> None:
    assert not SAYS.check_output("SEND_OK\n", "SEND_FAILED\n", doctest.ELLIPSIS)


def test_every_program_is_in_the_table_and_has_a_twin() -> None:
    programs = {file.stem for file in FOLDER.iterdir() if file.suffix in (".py", ".ipynb")}
    twins = {file.stem for file in TWINS.iterdir() if file.suffix in (".py", ".ipynb")}
    assert programs == twins == set(NAMES)
    assert len(NAMES) == 25


@pytest.mark.parametrize("name", NAMES)
def test_twin_compiles_and_uses_a_client_of_kafka(name: str) -> None:
    source = code(file_of(TWINS, name))
    compile(source, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert re.search(r"^from (confluent_kafka|aiokafka) import", source, re.MULTILINE)


def test_the_table_counts_the_programs_as_they_are() -> None:
    """`python -m docs.generate.examples` writes it again."""
    page = PAGE.read_text()
    assert page == with_table(page)
    assert page.count("(kafka/") == len(NAMES)
