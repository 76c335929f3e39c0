"""Packages of `make setup` are pinned for all requirements of setup.cfg; `make lock` writes the pins."""

from __future__ import annotations

import re
from configparser import ConfigParser

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.conftest import PROJECT, ROOT

PIN = re.compile(r"^([\w.-]+)==(\S+)[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}\b", re.MULTILINE)


def asked() -> dict[str, Requirement]:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lists = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    requirements = [Requirement(line) for lines in lists for line in lines.splitlines() if line]
    return {canonicalize_name(one.name): one for one in requirements if one.name != PROJECT}


def test_every_dependency_is_pinned_with_hashes_to_versions_that_setup_allows():
    """A name may have several pins, each for some versions of Python."""
    text = (ROOT / "constraints.txt").read_text()
    pins = PIN.findall(text)
    assert len(pins) == len(re.findall(r"^[^#\s]", text, re.MULTILINE))
    wanted = asked()
    unfit = [f"{name}=={version}" for name, version in pins if name in wanted and version not in wanted[name].specifier]
    assert (wanted.keys() - dict(pins).keys(), unfit) == (set(), []), "run `make lock`"
