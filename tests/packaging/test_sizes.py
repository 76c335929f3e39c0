"""The page says truly what an install brings; the base stays light."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tests.packaging.conftest import PROJECT, ROOT, requirements
from tests.packaging.daemons import environment
from tests.packaging.sizes import IMPORTS, megabytes, named

PAGE = ROOT / "docs" / "how-to" / "install.md"
ROW = re.compile(r"^\| `rocketmq-twisted(?:\[([\w,]+)\])?` \|[^|]*\| (\d+) \| ([\d.]+) \|", re.MULTILINE)
ROWS = {extras or "": (int(packages), float(size)) for extras, packages, size in ROW.findall(PAGE.read_text())}
MOST_MEGABYTES = 30
MOST_PACKAGES = 13
"""Twisted and the nine packages that it needs itself, construct, msgspec and this one."""
NOT_LOADED = (
    "twisted_mq.admin",
    "twisted_mq.client.ordered",
    "twisted_mq.coordination",
    "twisted_mq.protocol.requests",
    "twisted_mq.protocol.headers.auth",
    "twisted_mq.storage.log",
    "OpenSSL",
    "javaproperties",
    "lz4",
    "zstandard",
)


def site(python: str) -> Path:
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip())


@pytest.fixture(scope="module")
def measured(installed: Callable[[str], str]) -> Callable[[str], tuple[int, float]]:
    """Extras -> packages, and megabytes of their files."""
    folder = site(installed(""))

    def measure(extras: str) -> tuple[int, float]:
        (ours,) = Distribution.discover(name=PROJECT, path=[str(folder)])
        wanted = {name for extra in extras.split(",") for name in requirements(folder, extra)}
        found = named(wanted)
        return len(found) + 1, megabytes([ours, *found])

    return measure


@pytest.mark.parametrize("extras", sorted(ROWS))
def test_page_says_what_an_install_brings(measured: Callable[[str], tuple[int, float]], extras: str) -> None:
    packages, size = measured(extras)
    told_packages, told_size = ROWS[extras]
    assert told_packages == packages
    assert told_size == pytest.approx(size, rel=0.1, abs=1), f"{size:.1f} MB are installed"


def test_the_page_has_the_base_and_everything() -> None:
    assert {"", "all"} <= ROWS.keys()


def test_the_base_is_light(measured: Callable[[str], tuple[int, float]]) -> None:
    packages, size = measured("")
    assert packages <= MOST_PACKAGES
    assert size <= MOST_MEGABYTES


@pytest.mark.parametrize("face", ["twisted_mq.aio", "twisted_mq.blocking"])
def test_a_face_loads_what_producer_and_consumer_need(
    installed: Callable[[str], str], tmp_path: Path, face: str
) -> None:
    program = f"{IMPORTS[face]}; import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [installed(""), "-c", program], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    loaded = json.loads(done.stdout)
    assert [one for one in loaded if one.startswith(NOT_LOADED)] == []
    assert f"{face}.lite_pull_consumer" not in loaded


def test_the_name_of_a_package_loads_nothing_else(installed: Callable[[str], str], tmp_path: Path) -> None:
    program = "import twisted_mq.aio, sys; print([one for one in sys.modules if one.startswith('twisted.')])"
    done = subprocess.run(
        [installed(""), "-c", program], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
