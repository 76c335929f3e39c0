"""What a job has done of stores that it goes through piece by piece: a slice is what is left of one log file.

Slices end where log files do, and a store is done in the order of its log, so one mark says how far a job came.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

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
"""How far each store was done, by its key: at first `tag_of`, and that one still after the store was moved."""
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
        """How far the store is done with this slice. Raises LogFileGone."""
        return mark_at(self.store, list_log_files(self.store), self.end)


@attrs.frozen
class Work:
    """The slices that are left to do, and how many bytes of the logs are lost: they were to be done and are not there."""

    slices: tuple[Slice, ...]
    lost_bytes: int
    begun_anew: int
    """How many stores are done again from their begin, as their logs are not the ones of before."""
    absent: int
    """How many stores of earlier runs are not among these, or are not known again as nothing is left of what was done."""


def tag_of(store: Store) -> str:
    """A store's name in names of files and keys."""
    return hashlib.sha256(store.name.encode()).hexdigest()[:12]


def work(stores: Stores, done: Marks, fail_on_data_loss: bool = True) -> Work:
    """Find the slices behind these marks. Raises DataLost if bytes are missing or the log is not the one of before."""
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
    """The slices, those of a store that follow each other as one of at most `most_bytes`, or of one log file."""
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
    """Give the counts of losses that a job went on without; losses are faults."""
    return (
        Figure("bytes of logs that are lost", left.lost_bytes, Kind.BYTES, fault=True),
        Figure("stores begun anew", left.begun_anew, fault=True),
        Figure("stores of earlier runs that are not here", left.absent),
    )


class ProgressFile:
    """How far a job came, in a JSON file that is replaced as a whole. `about` is what must not change on the way."""

    def __init__(self, uri: str, about: Json) -> None:
        """Raises StoreReadError for a file of a job with other options, or of another kind."""
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
            raise StoreReadError(f"{uri}: says not how far a job came: {error}") from error
        if before != self._about:
            raise StoreReadError(f"{uri}: was begun with {before}, it cannot go on with {self._about}")

    def reached(self, done: Slice) -> None:
        """A slice is done: the file is replaced. Raises LogFileGone."""
        self.done = {key: mark for key, mark in self.done.items() if key != done.key} | {done.key: done.mark}
        text = json.dumps({"about": self._about, "done": {key: mark.as_json() for key, mark in self.done.items()}})
        with self._system.open_output_stream(f"{self._path}.new") as file:
            file.write(text.encode())
        self._system.move(f"{self._path}.new", self._path)
