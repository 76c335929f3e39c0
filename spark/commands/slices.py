"""What a job has done of stores that it goes through piece by piece: a slice is what is left of one log file.

Slices end where log files do, and a store is done in the order of its log, so one physical offset says how far a job came.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping

import attrs
from pyarrow import fs

from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.source.stores import Store, list_log_files, locate

Json = Mapping[str, object]


@attrs.frozen
class Slice:
    """Physical offsets [begin, end) of a store."""

    store: Store
    begin: int
    end: int


def tag_of(store: Store) -> str:
    """A store's name in names of files and keys."""
    return hashlib.sha256(store.name.encode()).hexdigest()[:12]


def nothing_done(tag: str) -> int:
    """For jobs that always begin with the log."""
    return 0


def slices(stores: Stores, done: Callable[[str], int]) -> Iterator[Slice]:
    """What is left to do; `done` says up to which physical offset the store of a tag is."""
    for store, end in stores.ends.items():
        begin = done(tag_of(store))
        for file in list_log_files(store):
            first, last = max(begin, file.first_offset), min(file.end, end)
            if first < last:
                yield Slice(store, first, last)


class ProgressFile:
    """How far a job came, in a JSON file that is replaced as a whole. `about` is what must not change on the way."""

    def __init__(self, uri: str, about: Json) -> None:
        """Raises StoreReadError for a file of a job with other options, or of another kind."""
        self._system, self._path = locate(uri)
        self._about = dict(about)
        self._done: dict[str, int] = {}
        if self._system.get_file_info(self._path).type == fs.FileType.NotFound:
            return
        try:
            with self._system.open_input_file(self._path) as file:
                kept = json.loads(file.read())
            before, self._done = kept["about"], dict(kept["done"])
        except (ValueError, KeyError, TypeError) as error:
            raise StoreReadError(f"{uri}: says not how far a job came: {error}") from error
        if before != self._about:
            raise StoreReadError(f"{uri}: was begun with {before}, it cannot go on with {self._about}")

    def done(self, tag: str) -> int:
        """The physical offset up to which the store of this tag is done."""
        return self._done.get(tag, 0)

    def reached(self, done: Slice) -> None:
        """A slice is done: the file is replaced."""
        self._done[tag_of(done.store)] = done.end
        text = json.dumps({"about": self._about, "done": self._done})
        with self._system.open_output_stream(f"{self._path}.new") as file:
            file.write(text.encode())
        self._system.move(f"{self._path}.new", self._path)
