"""The table of docs/examples/index.md: `python -m docs.generate.examples` writes it there."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from pathlib import Path

from docs.generate.tables import table

FOLDER = Path(__file__).parents[1] / "examples"
TWINS = FOLDER / "kafka"
PAGE = FOLDER / "index.md"
SHELVES = {
    "scripts": ("plain_script", "asyncio_script", "jupyter", "many_sends", "threads", "fork"),
    "frameworks": ("fastapi_app", "flask_app", "django_view", "celery_beside"),
    "stopping": ("graceful_stop", "cancellation"),
    "patterns": (
        "transactions",
        "outbox",
        "idempotent_consumer",
        "dead_letters",
        "delayed_jobs",
        "request_reply",
        "ordered_by_key",
        "batches_to_sqlite",
        "administer",
    ),
    "tests": ("test_with_pytest", "test_with_asyncio", "test_with_unittest", "test_with_trial"),
}
"""Shelf -> its programs, in the order of the table."""

_BETWEEN = re.compile(r"(?<=<!-- table -->\n).*?(?=\n<!-- end of table -->)", re.DOTALL)
_QUIET = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def file_of(folder: Path, name: str) -> Path:
    """The program of that name: a module, or a notebook."""
    script = folder / f"{name}.py"
    return script if script.exists() else folder / f"{name}.ipynb"


def description(file: Path) -> str:
    """A program's docstring, or a notebook's first cell."""
    if file.suffix == ".ipynb":
        return "".join(json.loads(file.read_text())["cells"][0]["source"])
    return ast.get_docstring(ast.parse(file.read_text()), clean=False) or ""


def code(file: Path) -> str:
    """A program's source; a notebook's cells of code, one after the other."""
    if file.suffix != ".ipynb":
        return file.read_text()
    return "\n".join(cells(file)) + "\n"


def cells(file: Path) -> list[str]:
    """The cells of code of a notebook."""
    return ["".join(cell["source"]) for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]


def lines(file: Path) -> int:
    """Count the lines of code, without blank lines, comments and the docstring."""
    source = code(file)
    tree = compile(source, str(file), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _QUIET
        for line in range(token.start[0], token.end[0] + 1)
    }
    if ast.get_docstring(tree) is not None:
        found -= set(range(1, (tree.body[0].end_lineno or 1) + 1))
    return len(found)


def examples() -> str:
    """The table: program, what it does, and how long it and its twin for Kafka are."""
    rows = []
    for shelf, names in SHELVES.items():
        for name in names:
            here, twin = file_of(FOLDER, name), file_of(TWINS, name)
            does = " ".join(description(here).split("\n\n")[0].split())
            library = "aiokafka" if "import AIOKafka" in code(twin) else "confluent-kafka"
            link = f"[`{here.name}`]({here.name})"
            rows.append((shelf, link, does, lines(here), f"[{lines(twin)}](kafka/{twin.name}) ({library})"))
    return table(("", "program", "does", "lines", "lines for Kafka"), rows)


def with_table(page: str) -> str:
    """The page with the table as it is now."""
    return _BETWEEN.sub(lambda _: examples(), page)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
