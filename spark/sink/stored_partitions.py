"""Which partitions of a stream's batch are stored already, when the batch failed because of others.

Kept in a file of the query's checkpoint until a later batch is done, so that a query that is started again sends nothing twice.
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
        """Those of this batch; none of others."""
        return self.digests if batch == self.batch else frozenset()


def read_stored(checkpoint: str | None) -> StoredPartitions:
    """What the checkpoint has; nothing where it has none, and where the file is of no use."""
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
        log.warning("%s is of no use, what was stored of the batch may be stored again: %s", path, error)
        return StoredPartitions()


def keep_stored(checkpoint: str | None, batch: int, digests: Iterable[str]) -> bool:
    """Replace what the checkpoint has. Return False where Arrow cannot write there, as where it knows no such file system."""
    if checkpoint is None:
        return False
    try:
        system, root = locate(local_path(checkpoint))
        system.create_dir(root, recursive=True)
        with system.open_output_stream(f"{root}/.{_NAME}") as file:
            file.write(json.dumps({"batch": batch, "stored": sorted(digests)}).encode())
        system.move(f"{root}/.{_NAME}", f"{root}/{_NAME}")
    except (OSError, ValueError, pa.ArrowException) as error:
        log.warning("what is stored of batch %d cannot be kept in %s: %s", batch, checkpoint, error)
        return False
    return True
