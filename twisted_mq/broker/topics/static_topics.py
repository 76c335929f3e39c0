"""Keeps topics whose logical queues are on several brokers (Apache: TopicQueueMappingManager)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import attrs

from twisted_mq.broker.topics.logic_queues import Pieces, check_kept, check_pieces
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion, TopicQueueMappingDetail, TopicQueueMappingInfo


class Mappings(Protocol):
    """A table of mappings on disk."""

    mappings: dict[str, TopicQueueMappingDetail]
    data_version: DataVersion


@attrs.define
class NoMappings:
    """An empty table, for a broker that keeps no mappings on disk."""

    mappings: dict[str, TopicQueueMappingDetail] = attrs.field(factory=dict)
    data_version: DataVersion = attrs.field(factory=DataVersion)


@attrs.define(eq=False)
class StaticTopics:
    """Mappings by topic. `save` writes them soon; `on_change` is called after each change."""

    broker_name: str
    now_ms: Callable[[], int]
    table: Mappings = attrs.field(factory=NoMappings)
    save: Callable[[], object] = lambda: None
    on_change: list[Callable[[], None]] = attrs.field(factory=list)
    log = Logger()

    @property
    def topics(self) -> Mapping[str, TopicQueueMappingDetail]:
        """Return all mappings; callers must not change them."""
        return self.table.mappings

    @property
    def data_version(self) -> DataVersion:
        """Return the version, which counts the changes, for slaves."""
        return self.table.data_version

    def get(self, topic: str) -> TopicQueueMappingDetail | None:
        """Return what this broker knows of a static topic; None for any other topic."""
        return self.table.mappings.get(topic)

    def led(self, topic: str, queue_id: int) -> Pieces | None:
        """Return the pieces of a logical queue whose writes this broker takes."""
        mapping = self.table.mappings.get(topic)
        pieces = None if mapping is None else mapping.hosted_queues.get(queue_id)
        return pieces if pieces and pieces[-1].bname == self.broker_name else None

    def shown(self, topics: Collection[str] | None = None) -> dict[str, TopicQueueMappingInfo]:
        """Return what name servers get: all static topics, or some (cloneAsMappingInfo)."""
        mappings = self.table.mappings
        names = mappings if topics is None else mappings.keys() & set(topics)
        return {name: self._info(mappings[name]) for name in sorted(names)}

    def _info(self, mapping: TopicQueueMappingDetail) -> TopicQueueMappingInfo:
        led = {
            queue_id: pieces[-1].queue_id
            for queue_id, pieces in mapping.hosted_queues.items()
            if pieces and pieces[-1].bname == self.broker_name
        }
        return TopicQueueMappingInfo(
            topic=mapping.topic,
            total_queues=mapping.total_queues,
            bname=mapping.bname,
            epoch=mapping.epoch,
            curr_id_map=led,
        )

    def update(self, mapping: TopicQueueMappingDetail, *, force: bool = False) -> None:
        """Store a mapping; queues that it does not name stay. Raises ValueError for one that contradicts what is known.

        With `force`, only its own pieces have to fit together.
        """
        if mapping.bname != self.broker_name:
            raise ValueError(f"The broker name is not equal {mapping.bname} != {self.broker_name}")
        for pieces in mapping.hosted_queues.values():
            check_pieces(pieces)
        known = self.get(mapping.topic)
        if known is not None:
            if not force:
                _check_follows(known, mapping)
            mapping = attrs.evolve(mapping, hosted_queues={**known.hosted_queues, **mapping.hosted_queues})
        self.table.mappings[mapping.topic] = mapping
        self.log.info(
            "static topic: topic={t} epoch={e} queues={q}",
            t=mapping.topic, e=mapping.epoch, q=sorted(mapping.hosted_queues),
        )  # fmt: skip
        self._changed(None)

    def delete(self, topic: str) -> None:
        """Delete a topic's mapping, if it exists."""
        if self.table.mappings.pop(topic, None) is not None:
            self._changed(None)

    def replace_all(self, mappings: Mapping[str, TopicQueueMappingDetail], version: DataVersion) -> None:
        """Replace the table by another broker's."""
        self.table.mappings = dict(mappings)
        self._changed(version)

    def _changed(self, version: DataVersion | None) -> None:
        known = self.table.data_version
        self.table.data_version = version or known.next_version(self.now_ms(), known.state_version)
        self.save()
        for tell in self.on_change:
            tell()


def _check_follows(old: TopicQueueMappingDetail, new: TopicQueueMappingDetail) -> None:
    """Raise ValueError for a mapping that may not replace the known one (updateTopicQueueMapping)."""
    if new.epoch < old.epoch:
        raise ValueError(f"Can't accept data with small epoch {new.epoch} < {old.epoch}")
    if new.scope != old.scope:
        raise ValueError(f"Can't accept data with unmatched scope {new.scope} != {old.scope}")
    same_epoch = new.epoch == old.epoch
    for queue_id, pieces in old.hosted_queues.items():
        if queue_id in new.hosted_queues:
            check_kept(pieces, new.hosted_queues[queue_id], same_epoch=same_epoch)
        elif same_epoch:
            raise ValueError("Cannot accept equal epoch with null data")
