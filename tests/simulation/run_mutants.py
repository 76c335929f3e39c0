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
# One line of context is enough: a docstring that is rewritten nearby takes no fault away.
APPLY = ["git", "apply", "-C1"]
PATCHES = Path(__file__).parent / "mutants"
COPIED = ("protocol", "storage", "spark", "twisted_mq", "tests")


def find(patch: Path) -> tuple[str, str]:
    """The mutant's name, and the first seed that finds it with what it says; nothing where none does.

    Only seeds whose world keeps every promise without the fault count.
    """
    with tempfile.TemporaryDirectory(prefix="mq-mutant-") as folder:
        for name in COPIED:
            shutil.copytree(ROOT / name, Path(folder, name), symlinks=True)
        subprocess.run([*APPLY, patch], cwd=folder, check=True)
        step = ORDERED_EACH if patch.name.startswith("ordered-") else 1
        seeds = range(step, (MOST_SEEDS + 1) * step, step)
        while seeds:
            seeds_of = ["--first", str(seeds.start), "--step", str(step), "--count", str(seeds.stop - seeds.start)]
            ran = _run(folder, *seeds_of, "--processes", "1", "--until-broken")
            found = [line for line in ran.stdout.splitlines() if line.startswith("seed ")]
            if not ran.returncode or not found:
                return patch.stem, "" if ran.stdout else ran.stderr[-2000:]
            seed = int(found[0].removeprefix("seed ").partition(":")[0])
            if not _run(str(ROOT), "--seed", str(seed)).returncode:
                return patch.stem, found[0]
            seeds = range(seed + step, seeds.stop, step)
    return patch.stem, ""


def _run(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The simulation of the tree in that folder."""
    command = [sys.executable, "-m", "tests.simulation.run", *arguments]
    environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


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
