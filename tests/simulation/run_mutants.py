"""Puts each fault of mutants/*.patch into a copy of the tree, and shows which seed finds it.

`python -m tests.simulation.run_mutants [NAME...]`; it fails where one is not found within 200 seeds that may find it.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.simulation.simulate import ORDERED_EACH

MOST_SEEDS = 200
ROOT = Path(__file__).parents[2]
PATCHES = Path(__file__).parent / "mutants"
COPIED = ("protocol", "storage", "spark", "twisted_mq", "tests")


def find(patch: Path) -> tuple[str, str]:
    """The mutant's name, and the first seed that finds it with what it says; nothing where none does."""
    with tempfile.TemporaryDirectory(prefix="mq-mutant-") as folder:
        for name in COPIED:
            shutil.copytree(ROOT / name, Path(folder, name), symlinks=True)
        subprocess.run(["git", "apply", str(patch)], cwd=folder, check=True)
        ran = subprocess.run(
            [sys.executable, "-m", "tests.simulation.run", *_seeds(patch), "--processes", "1", "--until-broken"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    found = [line for line in ran.stdout.splitlines() if line.startswith("seed ")]
    return patch.stem, found[0] if ran.returncode and found else ran.stderr[-2000:] if not ran.stdout else ""


def _seeds(patch: Path) -> list[str]:
    """Those that may find it: the code of ordered groups does nothing in other worlds."""
    step = ORDERED_EACH if patch.name.startswith("ordered-") else 1
    return ["--first", str(step), "--step", str(step), "--count", str(MOST_SEEDS * step)]


def main(names: list[str]) -> int:
    patches = [patch for patch in sorted(PATCHES.glob("*.patch")) if not names or patch.stem in names]
    missed = 0
    with multiprocessing.get_context("fork").Pool() as pool:
        for name, found in pool.imap_unordered(find, patches):
            print(f"{name}: {found or f'not found in {MOST_SEEDS} seeds'}", flush=True)
            missed += not found.startswith("seed ")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
