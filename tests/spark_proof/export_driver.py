"""The driver of an export in a process of its own, which ends itself at a change of the disk and tells what it begins.

All drivers use one Java, which outlives them.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection

import attrs
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from twisted_mq.spark import file_systems
from twisted_mq.spark.commands import delta_table, export, iceberg_table, parquet_directory, slices, targets
from twisted_mq.spark.commands.formats import TARGETS
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.commands.targets import ExportPlace, Target

WRITE, COMMIT, MERGE = "write", "commit", "merge"
"""Stages of an export that a driver tells."""
CHANGES = frozenset({"move", "delete_file", "delete_dir", "create_dir", "open_output_stream"})
"""Methods of Arrow's file systems that change them."""
PRELOADED = ["tests.spark_proof.export_driver", "tests.spark.commands.test_export"]
"""Modules that all drivers need, imported once."""


@attrs.frozen
class Job:
    """An export, and at which change of the disk its driver ends itself; 0: at none."""

    kind: str
    out: str
    paths: Sequence[str]
    compact: bool = False
    file_bytes: int = export.FILE_BYTES
    change: int = 0
    is_before: bool = True
    """True: the change is not made any more."""


@attrs.frozen
class Java:
    """Where the common Java listens."""

    port: int
    secret: str

    @classmethod
    def of(cls, session: SparkSession) -> Java:
        parameters = session.sparkContext._gateway.java_parameters  # type: ignore[union-attr]
        return cls(parameters.port, parameters.auth_token)

    def session(self) -> SparkSession:
        """Return a session of its own there, for a process that has none."""
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(self.port), self.secret
        gateway = launch_gateway()
        common = gateway.jvm.JavaSparkContext(gateway.jvm.org.apache.spark.SparkContext.getOrCreate())
        return SparkSession(SparkContext(gateway=gateway, jsc=common)).newSession()


def drive(java: Java, job: Job, tell: Connection) -> None:
    """Run one export in a process of its own. Tells each stage, and at last the number of changes."""
    changes = plant(job, tell.send)
    session = java.session()
    wanted = export.ExportSelection(compact=job.compact, file_bytes=job.file_bytes)
    export.export(Stores.opened(session, job.paths), 0, job.out, job.kind, wanted)
    tell.send(next(changes) - 1)
    os._exit(0)  # Java belongs to the others


class Planted:
    """A file system whose process ends at its n-th change."""

    def __init__(self, system: object, job: Job, changes: Iterator[int]) -> None:
        self._system, self._job, self._changes = system, job, changes

    def __getattr__(self, name: str) -> object:
        method = getattr(self._system, name)
        if name not in CHANGES or next(self._changes) != self._job.change:
            return method
        if self._job.is_before:
            die()

        def then_die(*given: object, **named: object) -> None:
            method(*given, **named)
            die()

        return then_die


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def plant(job: Job, tell: Callable[[object], None]) -> Iterator[int]:
    """Replace what changes the disk and what begins a stage, in this process. Returns the count of changes."""
    changes = itertools.count(1)
    locate = file_systems.locate

    def located(uri: str) -> tuple[object, str]:
        system, path = locate(uri)
        return Planted(system, job, changes), path

    for module in (export, slices, targets, parquet_directory, delta_table, iceberg_table):
        module.locate = located  # type: ignore[attr-defined]
    made, write = TARGETS[job.kind], export._export_slice

    def target(place: ExportPlace) -> Target:
        found = made(place)
        found.add = told(COMMIT, found.add)  # type: ignore[assignment, method-assign]
        found.compact = told(MERGE, found.compact)  # type: ignore[assignment, method-assign]
        return found

    def told(stage: str, method: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            tell(stage)
            return method(*given)

        return call

    TARGETS[job.kind] = target
    export._export_slice = told(WRITE, write)  # type: ignore[assignment]
    return changes
