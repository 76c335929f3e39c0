"""Stored partitions of a stream's batch that failed because of other partitions.

They are kept in a file of the query's checkpoint until a later batch is done, so that a restarted query does not send them twice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

import attrs
import pyarrow as pa
from pyarrow import fs

from twisted_mq.spark.file_systems import local_path, locate

log = logging.getLogger(__name__)
_NAME = "rocketmq-sink.json"


@attrs.frozen
class StoredPartitions:
    """The digests of the partitions of one batch that are stored; see `HeldMessages.digest`."""

    batch: int = -1
    digests: frozenset[str] = frozenset()

    def of_batch(self, batch: int) -> frozenset[str]:
        """Return the digests of this batch; none of other batches."""
        return self.digests if batch == self.batch else frozenset()


def read_stored(checkpoint: str | None) -> StoredPartitions:
    """Read the stored partitions from the checkpoint; nothing if the file is missing or damaged."""
    if checkpoint is None:
        return StoredPartitions()
    path = f"{checkpoint}/{_NAME}"
    try:
        system, root = locate(local_path(checkpoint))
        path = f"{root}/{_NAME}"
        if system.get_file_info(path).type == fs.FileType.NotFound:
            return StoredPartitions()
        with system.open_input_file(path) as file:
            kept = json.loads(file.read())
        return StoredPartitions(int(kept["batch"]), frozenset(map(str, kept["stored"])))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        log.warning("%s cannot be used, stored messages of the batch may be stored again: %s", path, error)
        return StoredPartitions()


def keep_stored(checkpoint: str | None, batch: int, digests: Iterable[str]) -> bool:
    """Replace the file in the checkpoint. Return False if Arrow cannot write there, for example to an unknown file system."""
    if checkpoint is None:
        return False
    try:
        system, root = locate(local_path(checkpoint))
        system.create_dir(root, recursive=True)
        with system.open_output_stream(f"{root}/.{_NAME}") as file:
            file.write(json.dumps({"batch": batch, "stored": sorted(digests)}).encode())
        system.move(f"{root}/.{_NAME}", f"{root}/{_NAME}")
    except (OSError, ValueError, pa.ArrowException) as error:
        log.warning("the progress of batch %d cannot be saved in %s: %s", batch, checkpoint, error)
        return False
    return True
