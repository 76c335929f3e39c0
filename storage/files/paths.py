"""Names of files and directories of a store (Apache: StorePathConfigHelper), and which names may become paths.

`<root>` is the root directory of the store.

    <root>/commitlog/00000000000000000000            records; the name is the physical offset of the first byte
    <root>/consumequeue/<topic>/<queue>/0000...0000  queue entries; the name is a byte offset too
    <root>/batchconsumequeue/<topic>/<queue>/0..0     entries of topics with queue.type=BatchCQ, see batch_consume_queue
    <root>/consumequeue_ext/<topic>/<queue>/0..0      extension units, see queue_extension
    <root>/index/20261120231855001                   key index
    <root>/config/topics.json, *.json.bak            tables
    <root>/damaged/                                  bytes that a recovery cut off the log (not in Apache)
    <root>/checkpoint  abort  lock                   abort exists while a broker runs
"""

from __future__ import annotations

import os
import re

from twisted_mq.storage.errors import IllegalTopicName

LONGEST_TOPIC_BYTES = 255
"""The longest directory name on Linux; Apache: HookUtils.MAX_TOPIC_LENGTH."""
FILE_NAME_DIGITS = 20

_TOPIC = re.compile(r"[%|+a-zA-Z0-9_-]{1,255}\Z")
_OFFSET = re.compile(r"[0-9]{20}\Z", re.ASCII)
_QUEUE_ID = re.compile(r"(0|[1-9][0-9]{0,9})\Z", re.ASCII)
HIGHEST_QUEUE_ID = 0x7FFFFFFF


def is_topic_name(topic: str) -> bool:
    """Return whether the name has only Apache's characters (TopicValidator), so that it cannot lead to another directory.

    The + is only for pop's retry topics, %RETRY%group+topic; users' topics may not contain it.
    """
    return _TOPIC.match(topic) is not None


def checked_topic(topic: str) -> str:
    """Return the same name. Raises IllegalTopicName if it is not allowed."""
    if not is_topic_name(topic):
        raise IllegalTopicName(topic)
    return topic


def file_name(offset: int) -> str:
    """Return the name of the file at a byte offset: 400 is 00000000000000000400 (Apache: UtilAll.offset2FileName)."""
    return f"{offset:0{FILE_NAME_DIGITS}d}"


def file_offset(name: str) -> int | None:
    """Return the byte offset in a file's name; None for other names."""
    return int(name) if _OFFSET.match(name) else None


def queue_id_of(name: str) -> int | None:
    """Return the queue id in a directory's name; None for other names."""
    if not _QUEUE_ID.match(name):
        return None
    queue_id = int(name)
    return queue_id if queue_id <= HIGHEST_QUEUE_ID else None


class StorePaths:
    """All paths under one root. `commit_log` may lie elsewhere (storePathCommitLog)."""

    def __init__(self, root: str, commit_log: str | None = None) -> None:
        self.root = root
        self.commit_log = commit_log or os.path.join(root, "commitlog")
        self.consume_queues = os.path.join(root, "consumequeue")
        self.batch_consume_queues = os.path.join(root, "batchconsumequeue")
        self.queue_extensions = os.path.join(root, "consumequeue_ext")
        self.index = os.path.join(root, "index")
        self.config = os.path.join(root, "config")
        self.damaged = os.path.join(root, "damaged")
        self.checkpoint = os.path.join(root, "checkpoint")
        self.abort = os.path.join(root, "abort")
        self.lock = os.path.join(root, "lock")

    def queue(self, topic: str, queue_id: int) -> str:
        """Return the directory of one queue. Raises IllegalTopicName, ValueError for a negative queue."""
        return _queue(self.consume_queues, topic, queue_id)

    def batch_queue(self, topic: str, queue_id: int) -> str:
        """Return the directory of one batch queue. Raises IllegalTopicName, ValueError for a negative queue."""
        return _queue(self.batch_consume_queues, topic, queue_id)

    def queue_extension(self, topic: str, queue_id: int) -> str:
        """Return the directory of one queue's extension units. Raises IllegalTopicName."""
        return os.path.join(self.queue_extensions, checked_topic(topic), str(queue_id))

    def queue_roots(self) -> list[str]:
        """Return the existing directories that hold all queues and their extensions."""
        roots = (self.consume_queues, self.batch_consume_queues, self.queue_extensions)
        return [root for root in roots if os.path.isdir(root)]

    def queue_directories(self) -> list[tuple[str, int]]:
        """Return (topic, queue id) of every queue directory on disk, sorted; other names are skipped."""
        return _queue_directories(self.consume_queues)

    def batch_queue_directories(self) -> list[tuple[str, int]]:
        """Return the same for batch queues."""
        return _queue_directories(self.batch_consume_queues)


def _queue(parent: str, topic: str, queue_id: int) -> str:
    if queue_id < 0:
        raise ValueError(f"queue id {queue_id} is negative")
    return os.path.join(parent, checked_topic(topic), str(queue_id))


def _queue_directories(parent: str) -> list[tuple[str, int]]:
    found = []
    for topic in _directories(parent):
        if is_topic_name(topic):
            ids = (queue_id_of(name) for name in _directories(os.path.join(parent, topic)))
            found += [(topic, queue_id) for queue_id in ids if queue_id is not None]
    return sorted(found)


def _directories(path: str) -> list[str]:
    """Return the names of the directories in `path`, without links; empty if `path` is no directory."""
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
