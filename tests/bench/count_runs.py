"""Counts instructions: a program for valgrind, and what starts it and reads what it counted.

The program imports everything once and forks a child for each path and number of pieces. A child's counters go on from
its parent's, so that of two children with different numbers of pieces the difference is what the further pieces took:
start-up, imports, the making of the requests and the first, slower turns of the interpreter are the same in both. The
children collect no garbage, hash with seed 0 and leave without closing their stores.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.bench.client_paths import CLIENT_PATHS
from tests.bench.count_paths import PATHS, CountedPath
from tests.bench.encrypted_paths import ENCRYPTED_PATHS
from tests.bench.grpc_paths import GRPC_PATHS

ROOT = Path(__file__).parents[2]
BROKER_PATHS = (*PATHS, *ENCRYPTED_PATHS, *GRPC_PATHS)
ALL_PATHS = (*BROKER_PATHS, *CLIENT_PATHS)
COUNTS = "counts.%p"
LOG = "valgrind.log"
_SUMMARY = re.compile(r"^summary: (\d+)", re.M)
_VALGRIND = ("valgrind", "--quiet", "--tool=cachegrind", "--cache-sim=no")
_SETTLED = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
"""Hashes as always, and no threads of numpy's."""
_PLAIN = {"MQ_COMPILED": "off"}
"""Without the compiled forms unless the environment says otherwise."""


class CountError(Exception):
    """A path did not do what it should, or valgrind did not run."""


# In the program


def run_path(path: CountedPath, count: int, folder: str) -> bool:
    """Make the path's most pieces and hand in `count` of them; whether that went well."""
    prepared = path.prepare(folder, path.many)
    gc.collect()
    gc.freeze()
    gc.disable()
    return path.succeeded(prepared.run(count))


def in_child(path: CountedPath, count: int, folder: str) -> int:
    """Run it in a forked process. Raises CountError; returns the process's id."""
    child = os.fork()
    if child == 0:
        succeeded = False
        try:
            succeeded = run_path(path, count, folder)
        except BaseException:
            traceback.print_exc()
        os._exit(not succeeded)
    if os.waitpid(child, 0)[1]:
        raise CountError(f"{path.name}: no success")
    return child


def main(names: Iterable[str]) -> None:
    """Print the process of each path and count."""
    for path in [path for path in ALL_PATHS if path.name in names]:
        for count in (path.few, path.many):
            with tempfile.TemporaryDirectory(prefix="count-") as folder:
                print(path.name, count, in_child(path, count, folder), sep="\t", flush=True)


# Outside of it


def instructions_of(text: str) -> int:
    """The total of a file that cachegrind wrote. Raises CountError."""
    found = _SUMMARY.search(text)
    if found is None:
        raise CountError("no summary in what cachegrind wrote")
    return int(found[1])


def difference(path: CountedPath, totals: dict[int, int]) -> float:
    """Instructions a request, from the totals by number of pieces."""
    return (totals[path.many] - totals[path.few]) / (path.many - path.few) / path.requests


def command(folder: str, names: Iterable[str]) -> list[str]:
    """Valgrind over this module, its counts and what it has to say in that folder."""
    files = f"--cachegrind-out-file={os.path.join(folder, COUNTS)}", f"--log-file={os.path.join(folder, LOG)}"
    return [*_VALGRIND, *files, sys.executable, "-m", "tests.bench.count_runs", *names]


def count_paths(paths: Iterable[CountedPath]) -> Iterator[tuple[CountedPath, float]]:
    """Instructions a request of each path, as soon as it is counted. Raises CountError."""
    by_name = {path.name: path for path in paths}
    with tempfile.TemporaryDirectory(prefix="counts-") as folder:
        environment = _PLAIN | os.environ | _SETTLED
        program = subprocess.Popen(
            command(folder, by_name), cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert program.stdout is not None
        totals: dict[int, int] = {}
        for line in program.stdout:
            name, count, process = line.rstrip("\n").split("\t")
            totals[int(count)] = instructions_of(Path(folder, COUNTS.replace("%p", process)).read_text())
            if int(count) == by_name[name].many:
                yield by_name[name], difference(by_name[name], totals)
                totals = {}
        if program.wait():
            raise CountError(f"exit code {program.returncode}\n{_text(Path(folder, LOG))}")


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def valgrind_version() -> str:
    """As it names itself: valgrind-3.19.0."""
    return subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1:])
