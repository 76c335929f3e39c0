"""Where records begin, as consume queues say it: hints for cutting a commit log file into splits.

The entries of one queue lie in the order of their records, so a binary search finds one near any physical offset with
a few page reads. A hint is only that: queues may be missing, damaged or behind the log. Whoever takes one checks that
a record is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.storage.files.files_at_rest import files_in
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.queues.queue_files import BatchQueueFiles, EntryFiles, QueueFiles

QUEUES_ASKED = 8
"""The longest queues have an entry near most offsets; more of them would hardly add any."""


class QueueHints:
    """The longest queues of a store, as long as they were when this was made."""

    def __init__(self, root: str) -> None:
        self._queues = _longest_queues(StorePaths(root))

    def records_near(self, physical_offset: int, end: int) -> Iterator[int]:
        """Offsets in [physical_offset, end) at which a record should begin, at most one from each queue."""
        for queue in self._queues:
            try:
                found = queue.record_from(physical_offset)
            except FileNotFoundError:  # its broker has deleted the file since it was listed
                continue
            if found < end:
                yield found


def _longest_queues(paths: StorePaths) -> list[EntryFiles]:
    """Those with the most bytes of files."""
    simple = [(QueueFiles, key, paths.queue(*key)) for key in paths.queue_directories()]
    batched = [(BatchQueueFiles, key, paths.batch_queue(*key)) for key in paths.batch_queue_directories()]
    queues = [*simple, *batched]
    longest = sorted(queues, key=lambda queue: sum(file.size for file in files_in(queue[2])), reverse=True)
    return [make(*key, directory) for make, key, directory in longest[:QUEUES_ASKED]]
