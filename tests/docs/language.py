"""What reads badly in pages, docstrings and texts for users: `python -m tests.docs.language [PATH...]`.

    python -m tests.docs.language twisted_mq/broker docs     what is found there; exit code 1 if anything is
    python -m tests.docs.language --classes                  names that more than one class has, in the whole tree

    python -m tests.docs.language --texts [PATH...]          texts for users only: errors, help, findings, pages, log lines

The rules find openings that hide the verb, pronouns for people where a thread or process is meant, long sentences, and
words that are not the field's. They find no bad text that keeps to them: read what you write.
`MENDED` lists what has no finding, `TEXTS` the folders whose texts for users have none; tests keep it so.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
SOURCES = ("protocol", "storage", "twisted_mq", "spark", "interop", "tests", "docs")

MENDED = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "protocol",
    "storage",
    "spark",
    "twisted_mq",
    "interop",
    "tests/siege",
    "tests/soak",
    "tests/week",
)
"""Files and folders that were read through. Append what you have mended."""

TEXTS = ("protocol", "storage", "twisted_mq", "spark", "pyspark_rocketmq")
"""Folders in which every string of `FEWEST` words or more is a text for a user: an error, a help, a finding, a log line."""

LONGEST = 40
"""Words of a sentence."""

FEWEST = 3
"""Words of a string that is read as a text."""

_OPENING = re.compile(r"(?:Of|Who|Whoever|What|Which|Whose|One|Those|That which|Whether|How|Where|He|She|It|They)\b")
_PRONOUN = re.compile(r"\b(he|she|him|his|her|himself|herself|whoever|somebody|nobody|anybody)\b", re.IGNORECASE)
_WORDS = {
    "befall": "happen to",
    "befalls": "happens to",
    "parted by": "separated by",
    "bear repeats": "be idempotent",
    "stands for": "is, means",
    "stand for": "are, mean",
    "stands in": "is in, replaces",
    "stand in": "are in, replace",
    "there is none": "say what is missing",
    "by the way of": "through",
    "of its own accord": "by itself",
    "to and fro": "in both directions",
    "anew": "again",
    "but for": "except",
    "as it were": "leave it out",
    "behind which": "after which",
    "is told": "is informed, gets",
    "are told": "are informed, get",
    "passed over": "skipped",
    "passes over": "skips",
    "pass over": "skip",
    "figures of": "metrics of",
    "so much as": "even",
    "aught": "anything",
    "nought": "nothing",
    "where it is left out": "if you leave it out",
    "will have none of": "refuses",
}
"""Words -> words of the field."""
_SAID = {
    "asked again": "retrying",
    "at work": "running",
    "come again": "be delivered again",
    "comes again": "is delivered again",
    "figures": "metrics",
    "given back": "returned",
    "go on": "continue",
    "goes on": "continues",
    "going on": "continuing",
    "handed out": "delivered",
    "is gone": "is deleted, is no longer in",
    "is there already": "already exists",
    "is well": "is healthy",
    "look at": "check",
    "looks at": "checks",
    "looked at": "checked",
    "made out": "found",
    "mend": "correct",
    "parted": "separated",
    "passed by": "skipped",
    "shall": "should",
    "so many": "this many, maximum number",
    "so much": "this much",
    "so often": "this many times",
    "so long": "this long",
    "stands": "is",
    "stay as it was": "is not changed",
    "stays as it is": "is not changed",
    "stays as it was": "is not changed",
    "strangers": "other hosts",
    "takes its place": "replaces it",
    "tried again": "retrying",
}
"""The same for the short texts that users read: errors, help, log lines."""
_SAID_WORD = re.compile(r"\b(" + "|".join(map(re.escape, _SAID)) + r")\b", re.IGNORECASE)
_NO = re.compile(r"(?<!there )\b(?:is|are|was) no\b(?! (?:longer|more)\b)")
_NOT_ENGLISH = re.compile(r"\n|\{:|<[a-z/!]|^(?:SELECT|INSERT|CREATE|DELETE|DROP) ")
"""Schemas, tables of columns, HTML and SQL."""
_WORD = re.compile(r"\b(" + "|".join(map(re.escape, _WORDS)) + r")\b", re.IGNORECASE)
_LACKS = re.compile(r"\b(?:has|have) not\b(?= (?:an?|the|any|its|their|got|such|one)\b|[.,;:|]|$)")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`\"(*\[])|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")
_CELL_END = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"``.+?``|`[^`\n]+`|\]\([^)]*\)|<[^<>\n]*>")
_FENCE = re.compile(r"^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HELP = {"help", "short_help", "epilog", "doc"}
_SETTINGS = {"option", "Option", "Setting"}
"""Classes and functions that declare a setting with its meaning."""


@attrs.frozen
class Text:
    """A piece of English. Its first word must be a verb or a noun if `opens`; stricter words count if `for_users`."""

    path: Path
    line: int
    text: str
    opens: bool = False
    for_users: bool = False


@attrs.frozen
class Finding:
    """What reads badly, and why."""

    text: Text
    reason: str

    def __str__(self) -> str:
        shown = " ".join(self.text.text.split())
        return f"{self.text.path.relative_to(ROOT)}:{self.text.line}: {self.reason}: {shown[:100]}"


def findings(path: Path) -> Iterator[Finding]:
    """Check a file, or all files below a folder."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.suffix in _READERS and not _is_left_out(file):
            for text in _READERS[file.suffix](file):
                yield from _check(text)


def text_findings(path: Path) -> Iterator[Finding]:
    """Check the texts for users in a Python file, or in all below a folder."""
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        if not _is_left_out(file):
            for text in _said(file):
                yield from _check(text)


def _is_left_out(file: Path) -> bool:
    parts = file.relative_to(ROOT).parts
    linked = parts[0] == "twisted_mq" and len(parts) > 1 and parts[1] in {"protocol", "storage", "spark"}
    return linked or file == Path(__file__).resolve() or bool({"generated", "__pycache__", "build"} & set(parts))


def _check(text: Text) -> Iterator[Finding]:
    plain = _CODE.sub("X", text.text)
    if text.opens and (opening := _OPENING.match(plain)):
        yield Finding(text, f"opens with {opening[0]!r}")
    for found in _PRONOUN.finditer(plain):
        yield Finding(text, f"says {found[0]!r}")
    for found in _WORD.finditer(" ".join(plain.split())):
        yield Finding(text, f"says {found[0]!r}, not {_WORDS[found[0].lower()]!r}")
    for found in _LACKS.finditer(" ".join(plain.split())):
        yield Finding(text, f"says {found[0]!r}, not 'does not have'")
    if text.for_users:
        for found in _SAID_WORD.finditer(" ".join(plain.split())):
            yield Finding(text, f"says {found[0]!r}, not {_SAID[found[0].lower()]!r}")
        for found in _NO.finditer(plain):
            yield Finding(text, f"says {found[0]!r}, not '{found[0].split()[0]} not a'")
    for sentence in _SENTENCE.split(plain):
        if (words := len(sentence.split())) > LONGEST:
            yield Finding(text, f"has a sentence of {words} words, {' '.join(sentence.split()[:6])} ...")


def _python(file: Path) -> Iterator[Text]:
    """Docstrings, those of attributes too, and the texts of errors and helps."""
    for node in ast.walk(ast.parse(file.read_text())):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for before, statement in zip([None, *body], body, strict=False):
                if isinstance(statement, ast.Expr) and _is_text(statement.value) and _is_docstring(node, before):
                    yield Text(file, statement.lineno, _prose(statement.value.value), opens=True)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _texts(file, node.exc.args)
        if isinstance(node, ast.keyword) and node.arg in _HELP:
            yield from _texts(file, [node.value])


def _said(file: Path) -> Iterator[Text]:
    """The strings of code that are English; a help, and the meaning of a setting, is to open with a verb or a noun."""
    tree = ast.parse(file.read_text())
    seen = {id(one) for one in _docstrings(tree)}
    opening = {id(node) for node in _meanings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            seen.update(map(id, node.values))
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in seen:
            for text in _texts(file, [node]):
                if len(text.text.split()) >= FEWEST and not _NOT_ENGLISH.search(text.text):
                    yield attrs.evolve(text, opens=id(node) in opening, for_users=True)


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _meanings(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _HELP:
            yield node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SETTINGS:
            yield from node.args


def _prose(docstring: str) -> str:
    """Leave out what is set apart by four spaces: examples, tables. Cells of a Markdown table are sentences of their own."""
    lines = [line for line in inspect.cleandoc(docstring).splitlines() if not line.startswith("    ")]
    return "\n".join(_CELL_END.sub("\n\n", line) if line.startswith("|") else line for line in lines)


def _is_docstring(node: ast.AST, before: ast.stmt | None) -> bool:
    if before is None:
        return isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    return isinstance(before, (ast.Assign, ast.AnnAssign))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _texts(file: Path, nodes: list[ast.expr]) -> Iterator[Text]:
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield Text(file, node.lineno, "".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(file, node.lineno, node.value)


def _page(file: Path) -> Iterator[Text]:
    """The paragraphs, list items and table cells of a page, without its blocks of code."""
    source = _COMMENT.sub(_blank, _FENCE.sub(_blank, file.read_text()))
    start = 0
    for piece in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|\n(?=#))", source):
        line = source.count("\n", 0, start + len(piece) - len(piece.lstrip())) + 1
        start += len(piece)
        if piece.lstrip().startswith("|"):
            yield from (Text(file, line, cell.strip()) for cell in re.split(r"(?<!\\)\|", piece) if cell.strip())
        elif piece.strip():
            yield Text(file, line, piece.strip())


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


_READERS = {".py": _python, ".md": _page}


def classes_of_one_name() -> dict[str, list[str]]:
    """Name -> the files of its classes, for each name that several classes have."""
    homes: dict[str, list[str]] = defaultdict(list)
    for top in SOURCES[:4]:
        for file in sorted((ROOT / top).rglob("*.py")):
            if not _is_left_out(file):
                for node in ast.walk(ast.parse(file.read_text())):
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                        homes[node.name].append(file.relative_to(ROOT).as_posix())
    return {name: files for name, files in sorted(homes.items()) if len(files) > 1}


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="Find what reads badly.")
    parser.add_argument("paths", nargs="*", help="by default MENDED, with --texts TEXTS")
    parser.add_argument("--texts", action="store_true", help="only the texts for users of Python files")
    parser.add_argument("--classes", action="store_true", help="names that several classes have")
    given = parser.parse_args()
    if given.classes:
        print("\n".join(f"{name}: {', '.join(files)}" for name, files in classes_of_one_name().items()))
        return 0
    paths, check = (TEXTS, text_findings) if given.texts else (MENDED, findings)
    found = [finding for path in given.paths or paths for finding in check((ROOT / path).resolve())]
    print("\n".join(map(str, found)) or "nothing found")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
