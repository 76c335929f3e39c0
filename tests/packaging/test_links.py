"""The links of `twisted_mq` to folders at the top, and a checkout whose git wrote them as text, as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, SOURCES, built_wheel, copy_sources

LINKED = ("protocol", "storage", "spark")
TOPS = (*(name for name in SOURCES if (ROOT / name).is_dir()), "tests", "interop", "docs", "deploy")


def test_the_tree_has_these_links_and_no_others():
    walked = (path for top in TOPS for path in (ROOT / top).rglob("*"))
    found = {path.relative_to(ROOT).as_posix(): os.readlink(path) for path in walked if path.is_symlink()}
    assert found == {f"twisted_mq/{name}": f"../{name}" for name in LINKED}


@pytest.mark.parametrize("name", LINKED)
def test_packages_are_the_folders_at_the_top(name):
    assert Path(import_module(f"twisted_mq.{name}").__file__).resolve().parent == ROOT / name


@pytest.fixture(scope="module")
def without_links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sources as git writes them with core.symlinks=false: a link is a file with its target."""
    source = tmp_path_factory.mktemp("without-links") / "source"
    copy_sources(source)
    for name in LINKED:
        link = source / "twisted_mq" / name
        target = os.readlink(link)
        link.unlink()
        link.write_text(target)
    return source


def test_wheel_of_a_checkout_without_links_has_the_same_files(without_links, wheel, tmp_path):
    found = contents(built_wheel(without_links, tmp_path))
    expected = contents(wheel)
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_editable_install_of_a_checkout_without_links_finds_the_folders(without_links, tmp_path):
    """`-S` leaves this environment out: its own install would be found first."""
    build = "import sys; from setuptools.build_meta import build_editable; build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=without_links, check=True, capture_output=True)
    site = tmp_path / "site"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        archive.extractall(site)
    find = f"import site; site.addsitedir({str(site)!r}); from importlib.util import find_spec; "
    find += f"print(*(find_spec(f'twisted_mq.{{name}}').origin for name in {LINKED}), sep='\\n')"
    for folder in (tmp_path, without_links):
        done = subprocess.run(
            [sys.executable, "-S", "-c", find], cwd=folder, check=True, capture_output=True, text=True
        )
        assert done.stdout.splitlines() == [str(without_links / name / "__init__.py") for name in LINKED]
