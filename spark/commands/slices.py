"""Progress of a job that processes stores in slices: a slice is the unfinished part of one log file.

Slices end at the ends of log files, and a store is processed in the order of its log, so one mark stores the progress.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs
from pyarrow import fs

from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.findings.findings import Figure, Kind
from twisted_mq.spark.source.losses import missing_bytes, report_missing
from twisted_mq.spark.source.marks import Mark, go_on, keys_of, mark_at, parse_mark, unused_key
from twisted_mq.spark.source.stores import Store, list_log_files

Json = Mapping[str, object]
Marks = Mapping[str, Mark]
"""Progress of each store by its key: first `tag_of`, which is kept after the store is moved."""
NOTHING_DONE: Marks = {}


@attrs.frozen
class Slice:
    """Physical offsets [begin, end) of a store, whose progress is kept under `key`."""

    store: Store
    begin: int
    end: int
    key: str

    @property
    def mark(self) -> Mark:
        """Return the progress of the store after this slice. Raises LogFileGone."""
        return mark_at(self.store, list_log_files(self.store), self.end)


@attrs.frozen
class Work:
    """The slices to do, and the number of lost bytes: requested bytes that are no longer in the logs."""

    slices: tuple[Slice, ...]
    lost_bytes: int
    begun_anew: int
    """Number of stores that start again because their logs are not the ones of the previous run."""
    absent: int
    """Number of stores of earlier runs that are missing, or not recognized because their finished part is deleted."""


def tag_of(store: Store) -> str:
    """Return the name of a store for file names and keys."""
    return hashlib.sha256(store.name.encode()).hexdigest()[:12]


def work(stores: Stores, done: Marks, fail_on_data_loss: bool = True) -> Work:
    """Find the slices after these marks. Raises DataLost if bytes are missing or the log is not the one of the previous run."""
    logs = {store: list_log_files(store) for store in stores.ends}
    keys = keys_of(done, logs, tag_of)
    used = set(done)
    slices: list[Slice] = []
    lost = anew = 0
    for store, end in stores.ends.items():
        files = logs[store]
        begin, key = (files[0].first_offset if files else 0), keys.get(store)
        if key is not None:
            reached = done[key].reached
            begin = go_on(store, files, done[key], end, fail_on_data_loss)
            if begin != reached:
                key = None
                anew += 1
        if key is None:
            key = unused_key(tag_of(store), used)
            used.add(key)
        for missing in missing_bytes(store, files, begin, end):
            report_missing(missing, fail_on_data_loss)
            lost += missing.end - missing.begin
        for file in files:
            first, last = max(begin, file.first_offset), min(file.end, end)
            if first < last:
                slices.append(Slice(store, first, last, key))
    names = {store.name for store in logs}
    absent = [key for key, mark in done.items() if key not in keys.values() and mark.store not in names]
    return Work(tuple(slices), lost, anew, len(absent))


def gathered(slices: Iterable[Slice], most_bytes: int) -> Iterator[Slice]:
    """Join consecutive slices of a store up to `most_bytes`; a slice of one log file may be larger."""
    held: Slice | None = None
    for piece in slices:
        if held is not None and held.key == piece.key and piece.end - held.begin <= most_bytes:
            held = attrs.evolve(held, end=piece.end)
            continue
        if held is not None:
            yield held
        held = piece
    if held is not None:
        yield held


def lost_figures(left: Work) -> tuple[Figure, ...]:
    """Return the counts of losses that a job skipped; losses are faults."""
    return (
        Figure("bytes of logs that are lost", left.lost_bytes, Kind.BYTES, fault=True),
        Figure("stores started again", left.begun_anew, fault=True),
        Figure("stores of earlier runs that are not here", left.absent),
    )


class ProgressFile:
    """Progress of a job, in a JSON file that is replaced atomically. `about` has the options that must not change."""

    def __init__(self, uri: str, about: Json, may_continue: Callable[[object, Json], bool] = operator.eq) -> None:
        """`may_continue` tells whether a job with the first options may be continued with the second ones.

        Raises StoreReadError for a file of a job with other options, or of another kind.
        """
        self._system, self._path = locate(uri)
        self._about = dict(about)
        self.done: dict[str, Mark] = {}
        if self._system.get_file_info(self._path).type == fs.FileType.NotFound:
            return
        try:
            with self._system.open_input_file(self._path) as file:
                kept = json.loads(file.read())
            before, self.done = kept["about"], {key: parse_mark(mark) for key, mark in kept["done"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreReadError(f"{uri}: does not contain the progress of a job: {error}") from error
        if not may_continue(before, self._about):
            raise StoreReadError(f"{uri}: was started with {before}, and cannot be continued with {self._about}")

    def reached(self, done: Slice) -> None:
        """Store that a slice is done by replacing the file. Raises LogFileGone."""
        self.done = {key: mark for key, mark in self.done.items() if key != done.key} | {done.key: done.mark}
        text = json.dumps({"about": self._about, "done": {key: mark.as_json() for key, mark in self.done.items()}})
        with self._system.open_output_stream(f"{self._path}.new") as file:
            file.write(text.encode())
        self._system.move(f"{self._path}.new", self._path)
