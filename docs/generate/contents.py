"""The site's menu, made from the lists of links on the landing page.

A code host shows the lists as they are. Sphinx wants the same as toctrees: `with_toctrees` adds one, hidden, for each heading.
"""

from __future__ import annotations

import re

_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n)*)", re.MULTILINE)
_PAGE = re.compile(r"\]\((?P<page>[\w/-]+)\.md\)")


def sections(source: str) -> dict[str, list[str]]:
    """Heading -> the pages that its lists link to, without their suffix, each once in the order of the links."""
    return {found["title"]: list(dict.fromkeys(_PAGE.findall(found["text"]))) for found in _SECTION.finditer(source)}


def with_toctrees(source: str) -> str:
    """The page with a hidden toctree for each of its sections behind it."""
    trees = [
        f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"
        for title, pages in sections(source).items()
        if pages
    ]
    return "\n".join([source, *trees])
