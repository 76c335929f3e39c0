"""Writes the page of `bench_curves`: a table, and a picture in which both sides' curves stand side by side."""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import matplotlib

from twisted_mq.storage.files.system_calls import descriptor_limit

NAMES = {"apache": "Apache 5.3.3", "ours": "this broker"}
PICTURE = "../pictures/curves.png"
Medians = Mapping[tuple[str, str, int], float]
"""Microseconds by axis, side and value."""


@attrs.frozen
class Curve:
    """A quantity that changes, its name in words, and its values."""

    name: str
    title: str
    values: Sequence[int]


def write_page(curves: Sequence[Curve], medians: Medians, arguments: argparse.Namespace) -> None:
    """Print the table; with `arguments.write` write the page and its picture, too."""
    table = "\n".join(_rows(curves, medians))
    print(table)
    if arguments.write:
        page = Path(arguments.write)
        page.write_text(_page(table, arguments))
        _draw(curves, medians, page.parent / PICTURE)


def _rows(curves: Sequence[Curve], medians: Medians) -> list[str]:
    rows = ["| | Apache 5.3.3, us | this broker, us | ratio |", "|---|---:|---:|---:|"]
    for curve in curves:
        ours = [medians[curve.name, "ours", value] for value in curve.values]
        theirs = [medians[curve.name, "apache", value] for value in curve.values]
        spans = f"{max(theirs) / min(theirs):.2f}", f"{max(ours) / min(ours):.2f}"
        rows.append(f"| **{curve.title}**: highest by lowest | {spans[0]} | {spans[1]} | |")
        rows += [
            f"| {value:,} | {a:.1f} | {b:.1f} | {b / a:.2f} |"
            for value, a, b in zip(curve.values, theirs, ours, strict=True)
        ]
    return rows


def _page(table: str, arguments: argparse.Namespace) -> str:
    command = f"--rounds {arguments.rounds} --seconds {arguments.seconds:g} --write docs/measurements/curves.md"
    versions = f"{platform.python_implementation()} {platform.python_version()}, Java {java_version()}"
    return f"""\
# How the cost grows

<!-- not run: takes minutes -->
```shell
python -m tests.bench.bench_curves {command}
```

This program wrote the page. It shows a broker's processor time a message, in microseconds, while one quantity changes. Sends
have JSON headers and bodies of 128 bytes, and 64 are in flight; of bodies from 64 KiB on it is 8. Consumers pull 32 messages
at a time, each from a queue of its own. A log of many GiB is sparse, with messages at the begin of each file. Values are
medians of {arguments.rounds} rounds, in which the brokers take turns. Stores are in memory. Each process may open
{descriptor_limit():,} files; a broker that may open fewer than three for each queue in use maps files again and again,
which costs more. {versions}.

![The curves of both brokers]({PICTURE})

{table}
"""


def java_version() -> str:
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "([^"]+)"', told)
    return found[1] if found else "unknown"


def _draw(curves: Sequence[Curve], medians: Medians, path: Path) -> None:
    """Draw a small picture for each curve. Its axis begins at zero."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, places = pyplot.subplots(1, len(curves), figsize=(3 * len(curves), 3.2), squeeze=False)
    for place, curve in zip(places[0], curves, strict=True):
        for side, name in NAMES.items():
            place.plot(
                range(len(curve.values)), [medians[curve.name, side, value] for value in curve.values], "o-", label=name
            )
        place.set_xticks(range(len(curve.values)), [f"{value:,}" for value in curve.values], rotation=45, fontsize=7)
        place.set_title(curve.title, fontsize=9)
        place.set_ylim(bottom=0)
    places[0][0].set_ylabel("us of processor time a message")
    places[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
