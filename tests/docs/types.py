"""The examples on the pages and in docs/examples, read by strict type checkers: `python -m tests.docs.types`, in `make check`.

Checked are the blocks of Python that a program of asyncio, plain calls or Deferreds would have: not tests, whose functions
are usually not annotated, nor what is built on libraries without types. They are saved in build/examples and read by mypy
--strict and by basedpyright, which is pyright from Python's index.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

from tests.docs.blocks import PAGES, ROOT, Block, blocks

FOLDER = ROOT / "build" / "examples"
OF_CLIENTS = re.compile(r"^from twisted_mq\.(aio|blocking|client|testing) import", re.MULTILINE)
UNTYPED = re.compile(r"^(?:from|import) (construct|django|fastavro|kafka|shop)\b", re.MULTILINE)
"""`shop` is another block of its page; `kafka` is not installed here."""
CHECKERS = (
    [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=mypy.ini", "."],
    [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--project", "pyrightconfig.json"],
)
WITHOUT_TYPES = ("celery", "django")
"""Libraries of programs in docs/examples that have no types."""
NOT_BY_PYRIGHT = ("celery_beside.py", "django_view.py", "fastapi_app.py")
"""Programs on these libraries, and on starlette's test client, whose types pyright does not find."""
MYPY = "[mypy]\n" + "".join(f"[mypy-{name}.*]\nignore_missing_imports = true\n" for name in WITHOUT_TYPES)
PYRIGHT = {
    "typeCheckingMode": "strict",
    "extraPaths": [str(ROOT)],
    "pythonVersion": "3.11",
    "reportPossiblyUnboundVariable": False,  # what a loop sets that runs
}


def examples() -> Iterator[Block]:
    """The blocks that are checked."""
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python" and OF_CLIENTS.search(block.text) and not is_left_out(block):
                yield block


def is_left_out(block: Block) -> bool:
    """Return True if a test runner collects the block, or if it needs libraries without types."""
    return "def test_" in block.text or UNTYPED.search(block.text) is not None


def name_of(block: Block) -> str:
    """Under which it is saved: its page and line."""
    return f"{block.page.stem.replace('-', '_').lower()}_{block.line}.py"


def save() -> int:
    """Write all examples again; return their number."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.py"):
        old.unlink()
    found = list(examples())
    for block in found:
        (FOLDER / name_of(block)).write_text(block.text)
    programs = sorted((ROOT / "docs" / "examples").glob("*.py"))
    for program in programs:
        shutil.copy(program, FOLDER)
    (FOLDER / "pyrightconfig.json").write_text(json.dumps(PYRIGHT | {"exclude": NOT_BY_PYRIGHT}))
    (FOLDER / "mypy.ini").write_text(MYPY)
    return len(found) + len(programs)


def main() -> int:
    """The exit code."""
    count = save()
    codes = [subprocess.run(command, cwd=FOLDER).returncode for command in CHECKERS]
    print(f"{count} examples checked in {FOLDER.relative_to(ROOT)}")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
