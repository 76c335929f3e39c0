"""Checks the JSON tables of a store: whether they can be read, and whether consumer offsets fit their queues."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from twisted_mq.protocol.bodies import ConsumerOffsetSerializeWrapper, TopicConfig, TopicConfigSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.text.fastjson import loads
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR
from twisted_mq.storage.tools.findings import CONFIG, OFFSETS, StoreFinding

TOPICS_FILE = "topics.json"
OFFSETS_FILE = "consumerOffset.json"
TABLES = (TOPICS_FILE, OFFSETS_FILE, "subscriptionGroup.json", "delayOffset.json", "consumerFilter.json")
QueueEnds = Mapping[tuple[str, int], int]
"""Maps topic and queue id to the offset after the queue's last entry."""


def unreadable_tables(paths: StorePaths) -> Iterator[StoreFinding]:
    """Yield a finding for each JSON file that exists and holds no JSON."""
    for name in TABLES:
        path = os.path.join(paths.config, name)
        try:
            with open(path, "rb") as file:
                loads(file.read())
        except FileNotFoundError:
            continue
        except (ProtocolError, ValueError) as error:
            backup = " (a .bak file exists)" if os.path.exists(path + ".bak") else ""
            yield StoreFinding(CONFIG, path, 0, f"cannot be read: {' '.join(str(error).split())}{backup}")


def known_topics(paths: StorePaths) -> Mapping[str, TopicConfig] | None:
    """Return the topics of topics.json; None if it is missing or cannot be read."""
    try:
        with open(os.path.join(paths.config, TOPICS_FILE), "rb") as file:
            return decode_body(TopicConfigSerializeWrapper, file.read()).topic_config_table
    except (OSError, ProtocolError, ValueError):
        return None


def consumer_offsets(paths: StorePaths) -> dict[str, dict[int, int]]:
    """Return "topic@group" to queue id to offset; empty if the file is missing or cannot be read."""
    try:
        with open(os.path.join(paths.config, OFFSETS_FILE), "rb") as file:
            table = decode_body(ConsumerOffsetSerializeWrapper, file.read()).offset_table
    except (OSError, ProtocolError, ValueError):
        return {}
    return {key: dict(queues) for key, queues in table.items()}


def excessive_offsets(paths: StorePaths, ends: QueueEnds) -> Iterator[tuple[str, int, int, int]]:
    """Yield (topic@group, queue id, offset, end) of offsets past the end of an existing queue."""
    for key, queues in sorted(consumer_offsets(paths).items()):
        topic = key.partition(TOPIC_GROUP_SEPARATOR)[0]
        for queue_id, offset in sorted(queues.items()):
            end = ends.get((topic, queue_id))
            if end is not None and offset > end:
                yield key, queue_id, offset, end


def offset_findings(paths: StorePaths, ends: QueueEnds) -> Iterator[StoreFinding]:
    """Yield a finding for each group whose offset is past the end of its queue."""
    path = os.path.join(paths.config, OFFSETS_FILE)
    for key, queue_id, offset, end in excessive_offsets(paths, ends):
        topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
        problem = f"group {group} has consumed {topic}/{queue_id} up to here, the queue ends at {end}"
        yield StoreFinding(OFFSETS, path, offset, problem)
