"""Instructions of the hot paths of broker and client, counted by valgrind, beside those that are stored: `make count`.

.venv/bin/python -m tests.bench.count [--only NAME | --write docs/measurements/instructions.md]

A machine's speed changes by the minute, a count does not: the same code gives the same figure to half a percent.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.count_paths import CountedPath
from tests.bench.count_runs import ALL_PATHS, BROKER_PATHS, ROOT, CountError, count_paths, valgrind_version

STORED = ROOT / "docs" / "measurements" / "instructions.md"
CLIENT_STORED = STORED.with_name("client.md")
"""The table of the client's paths is a part of a page."""
MISSING = "valgrind is missing: apt-get install valgrind, then run this again"
HEADLINE = f"{'path':28} {'a request':>12} {'a message':>12} {'stored':>12} {'difference':>11}"
_ROW = re.compile(r"^\| ([^|]+?) \| ([\d,]+) \| ([\d,]+) \|$", re.M)

Figures = dict[str, float]
"""Instructions a request, by the path's name."""

TEXT = """\
# Instructions of the broker's hot paths

These are counts of valgrind's cachegrind, without sockets, so that the machine's speed and other load do not matter.
`make count` counts again and shows the difference to this table, which is written by

<!-- not run: takes minutes -->
```shell
python -m tests.bench.count --write {file}
```

{python}, {valgrind}, {machine}.
Two rounds in a row differed by at most {spread:.2f} %. Runs of the same code at other times differed by up to 0.4 %, and edits
elsewhere have moved a path by up to 0.7 %. A difference below 1 % means nothing.

Bodies have 128 bytes, ragged ones 64 to 192. A request is a whole batch, pull, pop or index step, in the other rows
one message. The store is in files and flushes asynchronously. It writes no index, except in the row of the index, whose cost
comes on top of each stored message. Garbage is not collected. The paths are in `tests/bench/count_paths.py`,
`encrypted_paths.py` and `grpc_paths.py`.

The cost of statistics is the difference to the row "nothing counted". The broker always keeps some statistics; with metrics
(`metricsExporterType`, the row "figures shown") it also counts times and sizes.

| path | a request | a message |
|---|---:|---:|
{rows}
"""


# The stored table


def read_figures(text: str) -> Figures:
    """Return the counts of a table that was written."""
    return {name: float(request.replace(",", "")) for name, request, _ in _ROW.findall(text)}


def markdown(file: str, figures: Mapping[str, float], spread: float) -> str:
    """The file's text; `spread` is in percent."""
    rows = (
        f"| {path.name} | {figures[path.name]:,.0f} | {figures[path.name] / path.messages:,.0f} |"
        for path in BROKER_PATHS
    )
    return TEXT.format(
        file=file,
        python=python_build(),
        valgrind=valgrind_version(),
        machine=f"{platform.system()} {platform.machine()}",
        spread=spread,
        rows="\n".join(rows),
    )


def python_build() -> str:
    """The interpreter, and how it was optimized, as far as its instructions depend on it."""
    flags = str(sysconfig.get_config_var("CONFIG_ARGS"))
    profile = "with" if "--enable-optimizations" in flags else "without"
    return f"{platform.python_implementation()} {platform.python_version()} built {profile} --enable-optimizations"


def stored_figures() -> Figures:
    """Return the tables of broker and client, as far as they are written."""
    return {
        name: figure
        for file in (STORED, CLIENT_STORED)
        if file.exists()
        for name, figure in read_figures(file.read_text()).items()
    }


# What is shown


def row(path: CountedPath, request: float, stored: float | None) -> str:
    """Return a line of the table for the screen."""
    figures = f"{path.name:28} {request:12,.0f} {request / path.messages:12,.0f}"
    if stored is None:
        return f"{figures} {'-':>12} {'-':>11}"
    return f"{figures} {stored:12,.0f} {percent(request, stored):+9.2f} %"


def percent(figure: float, reference: float) -> float:
    """Return by how many percent a count is above the reference."""
    return (figure / reference - 1) * 100


def greatest_difference(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """In percent, of two rounds over the same paths."""
    return max(abs(percent(second[name], first[name])) for name in first)


def show(paths: Sequence[CountedPath], stored: Mapping[str, float]) -> Figures:
    """Count and print each path when it is counted. Raises CountError."""
    print(HEADLINE, flush=True)
    figures: Figures = {}
    for path, request in count_paths(paths):
        figures[path.name] = request
        print(row(path, request, stored.get(path.name)), flush=True)
    return figures


def chosen(name: str | None) -> list[CountedPath]:
    """The path of that name, or all whose names contain it."""
    exact = [path for path in ALL_PATHS if path.name == name]
    return exact or [path for path in ALL_PATHS if name is None or name in path.name]


def write(file: str, figures: Figures) -> None:
    """Count a second round, and write the first one's table."""
    spread = greatest_difference(figures, {path.name: request for path, request in count_paths(BROKER_PATHS)})
    print(f"a second round differs by at most {spread:.2f} %")
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(markdown(file, figures, spread))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="a path's name, or a part of some paths' names")
    parser.add_argument(
        "--write", metavar="FILE", help="write the table of the broker's paths in Markdown; counts twice"
    )
    options = parser.parse_args(arguments)
    paths = list(BROKER_PATHS) if options.write else chosen(options.only)
    if not paths:
        parser.error("no such path; there are: " + "; ".join(path.name for path in ALL_PATHS))
    if options.write and options.only:
        parser.error("--write needs all paths")
    if shutil.which("valgrind") is None:
        sys.exit(MISSING)
    try:
        figures = show(paths, stored_figures())
        if options.write:
            write(options.write, figures)
    except CountError as error:
        sys.exit(f"not counted: {error}")


if __name__ == "__main__":
    main()
