"""Tries a sample of mutants and tells how many the tests noticed: `make mutate N=1000 SEED=1`.

python -m tests.mutation.run --count 1000 --seed 1 [--again]

Everything runs in temporary copies of the tree, one for each process. Results are kept in build/mutate while their file is
unchanged, so that a run goes on where the last one ended; `--again` tries survivors again. Ends with 1 if a mutant survived that
equivalent.json does not explain.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue

import attrs

from tests.mutation.covering import Covering
from tests.mutation.mutants import Mutant, digest, mutants_below
from tests.mutation.targets import PACKAGES, TESTS

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "mutate"
EQUIVALENT = Path(__file__).with_name("equivalent.json")
SURVIVED, NOT_RUN = "survived", "no test runs it"
KILLED = ("failed", "timeout")
AT_ONCE = (3, 8, 8, 1000)
"""Number of test files for each child of the host: most mutants are found by the first."""
TIMES_SLOWER, STARTING_SECONDS = 10, 30
"""Timeout of tests: a multiple of their time with coverage, and the time of a child to load them."""


def sample(found: dict[str, list[Mutant]], count: int, seed: str) -> list[Mutant]:
    """The packages take turns, each with its mutants in random order: a larger sample begins with a smaller one."""
    shuffled = []
    for package, mutants in sorted(found.items()):
        order = list(mutants)
        random.Random(f"{seed} {package}").shuffle(order)
        shuffled.append(order)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*shuffled))
    return list(itertools.islice((mutant for mutant in turns if mutant is not None), count))


def stages(covering: Covering, mutant: Mutant, most_seconds: float) -> Iterator[dict[str, list[str]]]:
    """Tests by file, in the order in which they are tried, as many as took `most_seconds` together without a mutant.

    Tests in files with the source's name come first, then those that run most of its lines, among them the fastest. Of a line
    that runs at import those of the source's folder come before them. One that takes longer than what is left of the time is
    passed over.
    """
    tests, reach = covering.tests_of(mutant.path, mutant.lines), covering.reach(mutant.path)
    source = Path(mutant.path)
    near = f"tests/{source.parent}/" if covering.runs_at_import(mutant.path, mutant.lines) else ""
    tests.sort(key=lambda test: (source.stem not in test.partition("::")[0], not test.startswith(near), -reach[test]))
    left = most_seconds
    files: dict[str, list[str]] = {}
    for test in tests:
        if covering.seconds[test] <= left:
            left -= covering.seconds[test]
            files.setdefault(test.partition("::")[0], []).append(test)
    names = iter(files)
    for count in AT_ONCE:
        if chosen := list(itertools.islice(names, count)):
            yield {name: files[name] for name in chosen}


@contextmanager
def copy_of_tree() -> Iterator[Path]:
    """A temporary folder with the files that git knows or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    with tempfile.TemporaryDirectory(prefix="mq-mutate-") as folder:
        copy = Path(folder).resolve() / "tree"
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).exists():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
        yield copy


def environment(copy: Path, keeps_bytecode: bool = False) -> dict[str, str]:
    """Programs that tests start import from the copy too.

    While a file is changed they keep no bytecode: Python takes the old one for a source that changed within the same second
    to the same size. Compiled code would run in place of the changed source.
    """
    own = {"PYTHONPATH": str(copy), "TMPDIR": str(copy.parent), "MQ_COMPILED": "off"}
    return os.environ | own | {"PYTHONDONTWRITEBYTECODE": "" if keeps_bytecode else "1"}


def compile_once(copy: Path) -> None:
    """Have Python compile the unchanged sources, and pytest the tests: else each child of the host does."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *TESTS]
    subprocess.run(command, cwd=copy, env=environment(copy, keeps_bytecode=True), check=True, stdout=subprocess.DEVNULL)


@attrs.define
class Trial:
    """The copy of the tree, in which one file at a time is changed, and the process that runs tests in it."""

    copy: Path
    covering: Covering
    most_seconds: float
    _host: subprocess.Popen[str]
    _changes: int = 0

    @classmethod
    @contextmanager
    def open(cls, copy: Path, covering: Covering, most_seconds: float) -> Iterator[Trial]:
        command = [sys.executable, "-m", "tests.mutation.host"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=copy, env=environment(copy), stdin=pipe, stdout=pipe, text=True) as host:
            try:
                yield cls(copy, covering, most_seconds, host)
            finally:
                assert host.stdin is not None
                host.stdin.close()

    def outcome(self, mutant: Mutant) -> str:
        """Run the tests against a mutant. Return SURVIVED, NOT_RUN or one of the words in KILLED."""
        path = self.copy / mutant.path
        source, kept = path.read_bytes(), path.stat()
        path.write_bytes(mutant.apply(source))
        self._changes += 1
        os.utime(path, (self._changes, self._changes))  # a time of its own: no bytecode is of this second
        try:
            outcome = NOT_RUN
            for tests in stages(self.covering, mutant, self.most_seconds):
                outcome = self._run(tests)
                if outcome in KILLED:
                    return outcome
                outcome = SURVIVED
            return outcome
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))

    def _run(self, tests: dict[str, list[str]]) -> str:
        seconds = sum(self.covering.seconds[test] for ids in tests.values() for test in ids)
        request = {
            "tests": tests,
            "timeout_seconds": STARTING_SECONDS + TIMES_SLOWER * seconds,
            "log": str(self.copy.parent / "log"),
        }
        assert self._host.stdin is not None and self._host.stdout is not None
        self._host.stdin.write(json.dumps(request) + "\n")
        self._host.stdin.flush()
        answer = self._host.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"the process that runs tests ended with {self._host.wait()}")
        return answer


def cover(copies: list[Path]) -> Covering:
    """The covering of all of TESTS; the part of a file is measured again when it or a mutated package has changed.

    In each copy of the tree the tests of one folder run at a time.
    """
    copy = copies[0]
    sources = sorted(file for package in PACKAGES for file in (copy / package).rglob("*.py"))
    of_sources = digest(b"".join(str(file.relative_to(copy)).encode() + file.read_bytes() for file in sources))
    free: SimpleQueue[Path] = SimpleQueue()
    for one in copies:
        free.put(one)

    def parts(folder: str) -> list[Path]:
        files = [str(file.relative_to(copy)) for file in sorted((copy / folder).rglob("test_*.py"))]
        own = {
            name: KEPT / f"{name.replace('/', '-')}-{of_sources}-{digest((copy / name).read_bytes())}" for name in files
        }
        missing = [name for name in files if not own[name].exists()]
        if missing:
            print(f"finding out which lines {len(missing)} files of {folder} run", flush=True)
            found = _measured(free, missing, KEPT / f"measured-{folder.replace('/', '-')}.json")
            for name in missing:
                found.of_file(name).save(own[name])
        return list(own.values())

    with ThreadPoolExecutor(len(copies)) as threads:
        return Covering.joined(map(Covering.load, itertools.chain.from_iterable(threads.map(parts, TESTS))))


def _measured(free: SimpleQueue[Path], files: list[str], path: Path) -> Covering:
    """Run test files with coverage in a copy of the tree that is free; what they run is kept at `path`, too."""
    command = [sys.executable, "-m", "tests.mutation.covering", str(path), ",".join(PACKAGES), *files]
    copy = free.get()
    try:
        subprocess.run(command, cwd=copy, env=environment(copy), check=True, stdout=subprocess.DEVNULL)
    finally:
        free.put(copy)
    return Covering.load(path)


@attrs.define
class Results:
    """Outcomes by mutant and state of its file, one a line in a file that only grows."""

    path: Path
    _known: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def load(cls, path: Path) -> Results:
        rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        return cls(path, dict(rows))

    def __getitem__(self, key: str) -> str:
        return self._known[key]

    def get(self, key: str) -> str | None:
        return self._known.get(key)

    def put(self, key: str, outcome: str) -> None:
        self._known[key] = outcome
        with self.path.open("a") as file:
            file.write(json.dumps([key, outcome]) + "\n")


def try_all(
    chosen: list[Mutant], copies: list[Path], results: Results, options: argparse.Namespace, explained: Collection[str]
) -> dict[Mutant, str]:
    """The outcome of each mutant, of those that are known from `results`; in each copy of the tree one at a time."""
    digests = {path: digest((copies[0] / path).read_bytes()) for path in {mutant.path for mutant in chosen}}
    keys = {mutant: f"{digests[mutant.path]} {mutant.name}" for mutant in chosen}

    def is_known(mutant: Mutant) -> bool:
        outcome = results.get(keys[mutant])
        return outcome in KILLED or (outcome is not None and (not options.again or mutant.name in explained))

    covering = cover(copies)
    for copy in copies:
        compile_once(copy)
    left = [(number, mutant) for number, mutant in enumerate(chosen, 1) if not is_known(mutant)]
    waiting = iter(left)

    def try_some(copy: Path) -> None:
        with Trial.open(copy, covering, options.seconds) as trial:
            while (following := next(waiting, None)) is not None:
                number, mutant = following
                outcome = trial.outcome(mutant)
                results.put(keys[mutant], outcome)
                if outcome not in KILLED:
                    print(f"{number} of {len(chosen)}, {outcome}: {mutant.name}, line {mutant.lines[0]}", flush=True)

    with ThreadPoolExecutor(len(copies)) as threads:
        for tried in [threads.submit(try_some, copy) for copy in copies]:
            tried.result()
    return {mutant: results[keys[mutant]] for mutant in chosen}


def report(outcomes: dict[Mutant, str], explained: dict[str, str]) -> Iterator[str]:
    """A line for each package, one for all, and the survivors without a reason."""
    for package in (*PACKAGES, ""):
        found = {mutant: outcome for mutant, outcome in outcomes.items() if mutant.path.startswith(package)}
        if found:
            yield f"{package or 'all':30} {_told(found, explained)}"
    for mutant, outcome in outcomes.items():
        if outcome not in KILLED and mutant.name not in explained:
            yield f"{outcome}: {mutant.name}, line {mutant.lines[0]}"


def _told(outcomes: dict[Mutant, str], explained: dict[str, str]) -> str:
    counted = Counter(outcomes.values())
    killed = sum(counted[word] for word in KILLED)
    equivalent = sum(outcome not in KILLED and mutant.name in explained for mutant, outcome in outcomes.items())
    told = ", ".join(f"{counted[word]} {word}" for word in (*KILLED, SURVIVED, NOT_RUN))
    rate = 100 * killed / max(1, len(outcomes) - equivalent)
    return f"{len(outcomes):5} mutants: {told}; {equivalent} equivalent; {rate:.1f} % of the others killed"


def unexplained(outcomes: dict[Mutant, str], explained: dict[str, str]) -> Iterable[Mutant]:
    return [mutant for mutant, outcome in outcomes.items() if outcome not in KILLED and mutant.name not in explained]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=30, help="of tests for one mutant, as measured without it")
    parser.add_argument("--processes", type=int, default=1, help="of tests at once")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    options = parser.parse_args(arguments)
    KEPT.mkdir(parents=True, exist_ok=True)
    explained: dict[str, str] = json.loads(EQUIVALENT.read_text())
    with ExitStack() as stack:
        copies = [stack.enter_context(copy_of_tree()) for _ in range(options.processes)]
        chosen = sample(mutants_below(copies[0], PACKAGES), options.count, options.seed)
        outcomes = try_all(chosen, copies, Results.load(KEPT / "results.jsonl"), options, explained)
    print("\n".join(report(outcomes, explained)))
    return int(bool(unexplained(outcomes, explained)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
