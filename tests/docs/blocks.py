"""The code blocks of README.md, CONTRIBUTING.md and docs/, and what is said about running them.

A block in python, shell or properties is run as a reader would run it, all blocks of a page in one folder:

- a python or properties block whose first line is a comment with a file's name, `# test_orders.py`, is saved under it;
- another python block is a script;
- a shell block is given to bash.

A comment right above a block says more:

    <!-- not run: needs a package index -->      why it cannot run
    <!-- stays up on 9876 -->                    a server in a terminal of its own, until the end of the page
    <!-- up already -->                          the server that all pages share stands for it
    <!-- prints -->                              text: what the block before prints; "..." stands for anything
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts),
]
RUNNABLE = {"python", "shell", "properties"}
SHOWN_ONLY = {"text", "java", "sql"}
"""Java programs are run beside Apache's client, in interop/test_java_tests.py; queries by the tests of Spark."""

_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
_FILE_NAME = re.compile(r"# (?P<name>[\w-]+\.\w+)\n")


@attrs.frozen
class Block:
    """A fenced block. `mark` is the text of the comment above it."""

    page: Path
    line: int
    language: str
    text: str
    mark: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def not_run(self) -> str | None:
        """Why it is not run; None for one that is."""
        return self.mark.removeprefix("not run: ") if self.mark.startswith("not run: ") else None

    @property
    def port(self) -> str | None:
        """Return the port of the server that this block starts and leaves running."""
        return self.mark.removeprefix("stays up on ") if self.mark.startswith("stays up on ") else None

    @property
    def file_name(self) -> str | None:
        """Under which name it is saved."""
        named = _FILE_NAME.match(self.text)
        return named["name"] if named and self.language != "shell" else None


def blocks(page: Path) -> Iterator[Block]:
    """The code blocks of a page; directives of Sphinx are none."""
    source = page.read_text()
    for found in _FENCE.finditer(source):
        if not found["info"].startswith("{"):
            line = source.count("\n", 0, found.start("fence")) + 1
            yield Block(page, line, found["info"].strip(), found["text"], found["mark"] or "")


def runs(page: Path) -> bool:
    """Return True if a block of a page is run."""
    return any(block.language in RUNNABLE and block.not_run is None for block in blocks(page))
