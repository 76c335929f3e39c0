"""Environments with the wheel installed: nothing of the source tree is on their path.

Their dependencies are links to this environment's packages, for just those distributions that the wheel asks for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import Distribution, distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
IGNORED = shutil.ignore_patterns("__pycache__", "dropin.cache")
SOURCES = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "README.md",
    "LICENSE",
    "protocol",
    "storage",
    "twisted_mq",
    "spark",
    "pyspark_rocketmq",
    "twisted",
)
PROJECT = "rocketmq-twisted"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that MQ_WHEEL names, or one that is built without network from a copy of the sources."""
    if given := os.environ.get("MQ_WHEEL"):
        return Path(given)
    folder = tmp_path_factory.mktemp("wheel")
    copy_sources(folder / "source")
    return built_wheel(folder / "source", folder)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Extra, or "" for none -> an interpreter with the wheel and its dependencies."""

    @cache
    def interpreter(extra: str) -> str:
        folder = tmp_path_factory.mktemp(f"installed-{extra}") / "venv"
        venv.create(folder, with_pip=False, symlinks=True)
        python = str(folder / "bin" / "python")
        run(
            sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--quiet", str(wheel)
        )
        site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        for requirement in requirements(site, extra):
            link_files(distribution(requirement), site)
        return python

    return interpreter


@pytest.fixture(scope="session")
def installed_python(installed: Callable[[str], str]) -> str:
    """An interpreter with the wheel and all its extras."""
    return installed("all")


def copy_sources(target: Path) -> None:
    """Copy what a wheel is built from into a new folder; links stay links."""
    target.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=IGNORED)
        else:
            shutil.copy(ROOT / name, target / name)


def built_wheel(source: Path, folder: Path) -> Path:
    """Build a wheel into a folder that has none."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source))
    return next(folder.glob("*.whl"))


def run(*command: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def requirements(site: Path, extra: str) -> set[str]:
    """Names of all distributions that the installed wheel needs, those of its extras of extras too."""
    (ours,) = Distribution.discover(name=PROJECT, path=[str(site)])
    found: set[tuple[str, str]] = set()
    """Each with each extra it is asked for with: one that is there already may be asked for with more."""
    waiting = list(wanted(ours.requires, extra))
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        for asked in (one.extras or {""}) - {extra for known, extra in found if known == name}:
            found.add((name, asked))
            waiting += wanted(ours.requires if name == PROJECT else requires(name), asked)
    return {name for name, _ in found} - {PROJECT}


def wanted(lines: list[str] | None, extra: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, lines or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def link_files(installed: Distribution, site: Path) -> None:
    """Links to what a distribution has at the top of its site-packages; commands are left out."""
    for name in {file.parts[0] for file in installed.files or ()} - {".."}:
        link(Path(str(installed.locate_file(name))), site / name)


def link(source: Path, target: Path) -> None:
    """A folder that is there is filled: the wheel's plugin lies in Twisted's."""
    if source.name in ("__pycache__", "dropin.cache"):
        return
    if not target.exists():
        target.symlink_to(source)
    elif target.is_dir() and not target.is_symlink():
        for child in source.iterdir():
            link(child, target / child.name)
