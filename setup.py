"""Give what setup.cfg cannot: README.md with absolute links, and packages of a checkout without symbolic links."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

from setuptools import find_namespace_packages, setup

HERE = Path(__file__).parent
LINK = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?!https?:|#)(?P<path>[^)]+)\)")
LINKED = ("protocol", "storage", "spark")
"""Folders at the top that are packages of twisted_mq: each has a symbolic link there."""


def described(readme: str, source: str) -> str:
    """README's text, its relative links and pictures led to the address of the sources."""
    return LINK.sub(
        lambda link: (
            f"{link['image']}{link['text']}({source}/{'raw' if link['image'] else 'blob'}/main/{link['path']})"
        ),
        readme,
    )


def settings() -> configparser.ConfigParser:
    """Read setup.cfg."""
    read = configparser.ConfigParser()
    read.read(HERE / "setup.cfg", encoding="utf-8")
    return read


def source_address() -> str:
    """`Source` of setup.cfg's project_urls."""
    urls = dict(line.split(" = ", 1) for line in settings()["metadata"]["project_urls"].strip().splitlines())
    return urls["Source"]


def mapped_packages() -> dict[str, Any]:
    """Map packages to the folders at the top where git wrote links as text, which Windows' git does; else nothing.

    setup.cfg finds packages through the links: without them a wheel would lack three packages.
    """
    if all((HERE / "twisted_mq" / name).is_dir() for name in LINKED):
        return {}
    wanted = settings()["options.packages.find"]["include"].split()
    linked = find_namespace_packages(str(HERE), include=[f"{name}{end}" for name in LINKED for end in ("", ".*")])
    return {
        "packages": find_namespace_packages(str(HERE), include=wanted) + [f"twisted_mq.{name}" for name in linked],
        "package_dir": {f"twisted_mq.{name}": name for name in LINKED},
    }


if __name__ == "__main__":
    text = (HERE / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=described(text, source_address()),
        long_description_content_type="text/markdown",
        **mapped_packages(),
    )
