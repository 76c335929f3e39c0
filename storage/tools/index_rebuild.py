"""Builds the key index again, batch by batch, into a directory beside the old one."""

from __future__ import annotations

from twisted_mq.protocol.columns import Numbers
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.storage.columns.contents import Names
from twisted_mq.storage.columns.property_shapes import Shapes
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.index.index_file import KeyEntry
from twisted_mq.storage.index.index_service import IndexService
from twisted_mq.storage.tools.index_tools import DEFAULT_SIZES, BatchKeys, index_files, sizes_of


class IndexRebuild:
    """Takes every batch of the log, then `finish`. Files are named after their first message's store time.

    `names` numbers the topics.
    """

    def __init__(self, directory: str, sizes: IndexSizes) -> None:
        self.names = Names()
        self.entries = 0
        self._keys = BatchKeys(self.names)
        self._timestamp = 0
        self._service = IndexService(directory, sizes, lambda: self._timestamp)

    def add(self, batch: RecordColumns, topics: Numbers, shapes: Shapes) -> None:
        """Write the keys of a batch; `topics` has each row's number. Raises StoreFull."""
        rows, hashes = self._keys.of(batch, topics, shapes)
        self._timestamp = int(batch.store_timestamp[0])
        places, times = batch.physical_offsets[rows].tolist(), batch.store_timestamp[rows].tolist()
        keys: list[KeyEntry] = list(zip(hashes.tolist(), places, times, strict=True))
        self.entries += len(keys)
        self._service.put(keys)

    def finish(self) -> None:
        """Put all files on disk. Raises OSError."""
        for file in self._service.files:
            file.sync(system_calls.fdatasync)
        self._service.release()


def usual_sizes(paths: StorePaths, sizes: IndexSizes | None) -> IndexSizes:
    """Return the sizes of the store's index files, or Apache's default."""
    if sizes is not None:
        return sizes
    known = (sizes_of(path, None) for path in index_files(paths))
    return next((one for one in known if one is not None), DEFAULT_SIZES)
