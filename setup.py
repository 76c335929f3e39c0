"""The description on the package's page: README.md with absolute links. Everything else is in setup.cfg."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
LINK = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?!https?:|#)(?P<path>[^)]+)\)")


def described(readme: str, source: str) -> str:
    """README's text, its relative links and pictures led to the address of the sources."""
    return LINK.sub(
        lambda link: (
            f"{link['image']}{link['text']}({source}/{'raw' if link['image'] else 'blob'}/main/{link['path']})"
        ),
        readme,
    )


def source_address() -> str:
    """`Source` of setup.cfg's project_urls."""
    settings = configparser.ConfigParser()
    settings.read(HERE / "setup.cfg", encoding="utf-8")
    urls = dict(line.split(" = ", 1) for line in settings["metadata"]["project_urls"].strip().splitlines())
    return urls["Source"]


if __name__ == "__main__":
    text = (HERE / "README.md").read_text(encoding="utf-8")
    setup(long_description=described(text, source_address()), long_description_content_type="text/markdown")
