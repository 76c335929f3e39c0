"""kill -9 of the driver of exports, many a minute: at changes of the disk, while Spark writes, commits, or merges.

    python -m tests.spark_proof.export_points --kills 200

One Java serves all drivers and outlives them, so what a killed driver began goes on there beside the next export. Each format has
two stores, which get messages before each export. After each kill the table may have no message twice, and one of Delta or
Iceberg must have a whole begin of each log. After ten kills an export runs to its end; then the table must have each message
once. `export_kills` kills whole exports, with their Java, beside a broker.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import deltalake
from pyiceberg.catalog.sql import SqlCatalog

from tests.spark.commands.test_export import DAY_MS, READERS
from tests.spark.java import INTERPRETED, SHORT_LIVED
from tests.spark.stores import BORN_MS, StoreWriter
from tests.spark_proof.export_driver import COMMIT, MERGE, PRELOADED, WRITE, Java, Job, drive
from twisted_mq.spark.commands import export
from twisted_mq.spark.session import SETTINGS, local_session

KINDS = sorted(READERS)
CHANGE = "change"
LONGEST_SECONDS = {WRITE: 1.0, COMMIT: 0.1, MERGE: 0.1}
"""A stage of an export, and the longest time from its begin to a kill."""
CHECK_KILLS = 10
"""Kills of one format, one behind the other, before its table is checked whole."""
FILE_BYTES = 8192
TABLE_FILE_BYTES = (export.FILE_BYTES, 65536)
"""For the second one an export plans the files of its slices."""
MESSAGES = 40
"""Messages that each store gets before an export: two log files."""
TOPICS = ("Orders", "Bills", "%RETRY%audit")
COMPACTING = 0.25
"""How many of the exports merge small files, beside those that are killed there."""
PATIENCE_SECONDS = 120.0
HAS_TABLE: dict[str, Callable[[Path], bool]] = {
    "parquet": lambda out: any(out.glob("topic=*/day=*/*.parquet")),
    "delta": lambda out: deltalake.DeltaTable.is_deltatable(str(out)),
    "iceberg": lambda out: (
        (out / "catalog.db").exists()
        and SqlCatalog("rocketmq", uri=f"sqlite:///{out}/catalog.db").table_exists("rocketmq.messages")
    ),
}
Places = list[tuple[str, int]]
"""(store, physical offset) of each row."""


@attrs.define
class Exports:
    """Exports of two stores into a table of one kind, one after the other."""

    kind: str
    directory: Path
    java: Java
    random: random.Random
    kills: Counter[str] = attrs.field(factory=Counter)
    """How many drivers were killed at what."""
    problems: list[str] = attrs.field(factory=list)
    checks: int = 0
    _stores: list[StoreWriter] = attrs.field(factory=list)
    _changes: int = 20
    """Changes of the disk that the last whole export made."""

    def __attrs_post_init__(self) -> None:
        self._stores = [StoreWriter(self.directory / name / "store", FILE_BYTES) for name in "ab"]

    @property
    def written(self) -> Places:
        return [(str(store.root), offset) for store in self._stores for offset in store.positions]

    def run(self, kills: int) -> None:
        """Kill so many drivers, and check the table after an export that is not killed."""
        wanted = self.kills.total() + kills
        while self.kills.total() < wanted:
            self._add_messages()
            what = self.random.choice([CHANGE, *LONGEST_SECONDS])
            if self._driven(self._job(what), what) == -signal.SIGKILL:
                self.kills[what] += 1
                self._check_rows()
        self._driven(self._job())
        self._check_rows()
        found = set(self._places())
        self._check("missing", [place for place in self.written if place not in found])
        self.checks += 1

    def _add_messages(self) -> None:
        for store in self._stores:
            for _ in range(MESSAGES):
                topic, day = self.random.choice(TOPICS), self.random.randrange(2)
                store.append(topic, b"%d" % len(store.positions), born_timestamp=BORN_MS + day * DAY_MS)
            store.write()

    def _job(self, what: str = "") -> Job:
        return Job(
            self.kind,
            str(self.directory / "out"),
            [str(store.root) for store in self._stores],
            compact=what == MERGE or self.random.random() < COMPACTING,
            file_bytes=self.random.choice(TABLE_FILE_BYTES),
            change=self.random.randint(1, self._changes) if what == CHANGE else 0,
            is_before=self.random.random() < 0.5,
        )

    def _driven(self, job: Job, stage: str = "") -> int:
        """Run a driver, kill it at some time after one of the stages of this name began, and return its exit code."""
        forks = multiprocessing.get_context("forkserver")
        told, tell = forks.Pipe(duplex=False)
        driver = forks.Process(target=drive, args=(self.java, job, tell))
        driver.start()
        tell.close()
        left = 0 if stage == MERGE else self.random.randrange(3)
        with contextlib.suppress(EOFError):  # the driver has ended
            while told.poll(PATIENCE_SECONDS):
                said = told.recv()
                if isinstance(said, int) and not job.compact:
                    self._changes = said
                elif said == stage:
                    if not left:
                        time.sleep(self.random.uniform(0, LONGEST_SECONDS[stage]))
                        driver.kill()
                    left -= 1
        driver.join(PATIENCE_SECONDS)
        if driver.exitcode is None:
            driver.kill()
            driver.join()
            self._check(f"export that did not end within {PATIENCE_SECONDS:.0f} s", [job])
        elif driver.exitcode not in (0, -signal.SIGKILL):
            self._check(f"export that ended with {driver.exitcode}", [job])
        return driver.exitcode or 0

    def _check_rows(self) -> None:
        """Check what a reader may see after a kill."""
        found, written = self._places(), self.written
        self._check("in the table twice", [place for place, times in Counter(found).items() if times > 1])
        self._check("never written", sorted(set(found) - set(written)))
        if self.kind != "parquet":
            seen = set(found)
            for _, log in itertools.groupby(written, key=lambda place: place[0]):
                behind = itertools.dropwhile(seen.__contains__, log)
                self._check("behind a gap", [place for place in behind if place in seen])

    def _check(self, what: str, wrong: Sequence[object]) -> None:
        if wrong:
            self.problems.append(f"{self.kind}: {len(wrong)} {what}: {wrong[:3]}")

    def _places(self) -> Places:
        """Return (store, physical offset) of the rows, as a library of the format reads them; none before there is a table."""
        out = self.directory / "out"
        if not HAS_TABLE[self.kind](out):
            return []
        rows = READERS[self.kind](str(out)).select(["store", "physicalOffset"]).to_pylist()
        return [(row["store"], row["physicalOffset"]) for row in rows]

    def __str__(self) -> str:
        stages = ", ".join(f"{what} {self.kills[what]}" for what in (CHANGE, *LONGEST_SECONDS))
        return (
            f"{self.kind}: {self.kills.total()} kills ({stages}), {len(self.written)} messages, checked whole "
            f"{self.checks} times: {'; '.join(self.problems) or 'none lost, none twice'}"
        )


def run(directory: Path, java: Java, kills: int, seed: int, seconds: float = float("inf")) -> list[Exports]:
    """Kill drivers of each kind in turn, ten of one at a time; none after so many seconds."""
    end = time.monotonic() + seconds
    chance = random.Random(seed)
    exports = [Exports(kind, directory / kind, java, chance) for kind in KINDS]
    for one in itertools.cycle(exports):
        left = kills - sum(each.kills.total() for each in exports)
        if left <= 0 or time.monotonic() >= end:
            return exports
        one.run(min(left, CHECK_KILLS))
    return exports


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no kill begins after so many seconds")
    given = parser.parse_args()
    settings = {
        "spark.driver.extraJavaOptions": f"{SETTINGS['spark.driver.extraJavaOptions']} {SHORT_LIVED}",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",  # tasks of killed drivers have nobody to report to
        **INTERPRETED,
    }
    session = local_session("export-points", 2, settings)
    multiprocessing.set_forkserver_preload(PRELOADED)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spark-proof-") as directory:
        done = run(Path(directory), Java.of(session), given.kills, given.seed, given.seconds)
    print("\n".join(map(str, done)), f"{time.monotonic() - began:.0f} s", sep="\n")
    session.stop()
    return any(one.problems for one in done)


if __name__ == "__main__":
    sys.exit(main())
