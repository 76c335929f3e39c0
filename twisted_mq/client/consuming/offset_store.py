"""A group's offsets: at the broker for clustering, in a local file for broadcasting.

Offsets are kept in memory and written to their store by `persist`. A frozen offset takes no update until it is removed:
the queue's position was just corrected, and late results must not change it (Apache: ControllableOffset).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from twisted_mq.client.consuming.consumer_options import ConsumeFromWhere, ConsumerOptions
from twisted_mq.client.core.errors import EXPECTED_ERRORS, level_of
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.times import moment_ms
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue, OffsetSerializeWrapper, decode_body, encode_body
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.reactor_threads import InThread


class OffsetStore:
    """The offsets in memory, which both kinds of store share."""

    log = Logger()

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}
        self._frozen: set[MessageQueue] = set()

    def remembered(self, queue: MessageQueue) -> int | None:
        """Return the offset in memory."""
        return self._offsets.get(queue)

    def to_commit(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group may commit; None if nothing was consumed yet."""
        return self._offsets.get(queue)

    def all(self) -> dict[MessageQueue, int]:
        """Return all offsets in memory."""
        return dict(self._offsets)

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Set the offset; with `increase_only`, ignore one that is smaller than the known offset."""
        if self._frozen and queue in self._frozen:
            return
        known = self._offsets.get(queue)
        if not increase_only or known is None or offset > known:
            self._offsets[queue] = offset

    def freeze(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset and refuse updates until `remove`."""
        self._offsets[queue] = offset
        self._frozen.add(queue)

    def remove(self, queue: MessageQueue) -> None:
        """Forget the queue: it went to another member, or starts again."""
        self._offsets.pop(queue, None)
        self._frozen.discard(queue)

    async def read(self, queue: MessageQueue) -> int | None:
        """Read the stored offset and keep it in memory. Return None if the group has none yet."""
        raise TypeError(f"{type(self).__name__} stores nothing")

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """Write these queues' offsets to the store; a failure is logged and the offset stays in memory."""
        raise TypeError(f"{type(self).__name__} stores nothing")


LOOK_AGAIN_EACH = 12
"""Rounds of `persist`, 5 s apart by default, of which one looks whether the brokers still have the offsets that were read."""


class RemoteOffsetStore(OffsetStore):
    """Offsets of a clustering group, kept by each queue's broker (Apache: RemoteBrokerOffsetStore).

    An offset that was read is committed only after messages behind it were consumed: a slave that answered for its master may
    have known an earlier one. (Apache's client commits it.) A broker that has lost it since, by a power cut, gets it again. Else
    a group that waits at a queue's end has no offset there, and never ends the term of an ordered queue.
    """

    def __init__(self, group: str, client: MQClient) -> None:
        super().__init__()
        self._group = group
        self._client = client
        self._read: dict[MessageQueue, int] = {}
        self._rounds = 0

    async def read(self, queue: MessageQueue) -> int | None:
        address = await self._client.routes.serving(queue)
        offset = await self._client.calls.consumer_offset(address, self._group, queue)
        if offset is not None:
            self.update(queue, offset)
            self._read[queue] = offset
        return offset

    def remove(self, queue: MessageQueue) -> None:
        super().remove(queue)
        self._read.pop(queue, None)

    def to_commit(self, queue: MessageQueue) -> int | None:
        offset = self._offsets.get(queue)
        return None if offset == self._read.get(queue) else offset

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        self._rounds += 1
        for queue in queues:
            offset = self.to_commit(queue)
            try:
                if offset is None and self._rounds % LOOK_AGAIN_EACH == 0:
                    offset = await self._lost(queue)
                if offset is None:
                    continue
                address = await self._client.routes.serving(queue)
                await self._client.calls.update_consumer_offset(address, self._group, queue, offset)
            except EXPECTED_ERRORS as error:
                self.log.emit(
                    level_of(error),
                    "offset not committed: group={group} topic={topic} queue={queue} offset={offset} {error}",
                    group=self._group, topic=queue.topic, queue=queue.queue_id, offset=offset, error=error,
                )  # fmt: skip

    async def _lost(self, queue: MessageQueue) -> int | None:
        """Return the offset that was read if the broker has a lower one or none now; None if nothing was read."""
        read = self._read.get(queue)
        if read is None:
            return None
        address = await self._client.routes.serving(queue)
        stored = await self._client.calls.consumer_offset(address, self._group, queue)
        return read if (stored or 0) < read else None


class LocalOffsetStore(OffsetStore):
    """Offsets of a broadcasting group on this machine, in `offsets.json` (Apache: LocalFileOffsetStore).

    A damaged file is renamed to `offsets.json.damaged`, and the copy before it (`.bak`) is read.
    """

    def __init__(self, path: Path, in_thread: InThread) -> None:
        super().__init__()
        self._path = path
        self._in_thread = in_thread
        self._stored: dict[MessageQueue, int] | None = None

    async def read(self, queue: MessageQueue) -> int | None:
        if self._stored is None:
            self._stored = await self._in_thread(self._load)
        offset = self._stored.get(queue)
        if offset is not None:
            self.update(queue, offset)
        return offset

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        if self._stored is None:
            self._stored = await self._in_thread(self._load)
        now = {**self._stored, **{queue: self._offsets[queue] for queue in queues if queue in self._offsets}}
        if now == self._stored:
            return
        try:
            await self._in_thread(self._save, encode_body(OffsetSerializeWrapper(offset_table=now)))
        except OSError as error:
            self.log.warn("offsets not saved: path={path} {error}", path=str(self._path), error=error)
            return
        self._stored = now

    def _load(self) -> dict[MessageQueue, int]:
        for path in (self._path, self._backup):
            try:
                return decode_body(OffsetSerializeWrapper, path.read_bytes()).offset_table
            except FileNotFoundError:
                continue
            except BodyError as error:
                aside = path.with_name(path.name + ".damaged")
                os.replace(path, aside)
                self.log.warn("offset file damaged: renamed to {aside}: {error}", aside=str(aside), error=error)
        return {}

    def _save(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_name(self._path.name + ".tmp")
        fresh.write_bytes(data)
        if self._path.exists():
            os.replace(self._path, self._backup)
        os.replace(fresh, self._path)

    @property
    def _backup(self) -> Path:
        return self._path.with_name(self._path.name + ".bak")


async def start_offset(queue: MessageQueue, client: MQClient, options: ConsumerOptions, offsets: OffsetStore) -> int:
    """Return the stored offset, else the one that consume_from_where gives (RebalancePushImpl.computePullFromWhere).

    Messages to be retried are never skipped. Raises NoRoute, RemotingError or BrokerError.
    """
    stored = await offsets.read(queue)
    if stored is not None and stored >= 0:
        return stored
    retry = queue.topic.startswith(RETRY_PREFIX)
    policy = options.consume_from_where
    if policy is ConsumeFromWhere.FIRST_OFFSET or (retry and policy is ConsumeFromWhere.LAST_OFFSET):
        return 0
    address = await client.routes.serving(queue)
    if policy is ConsumeFromWhere.LAST_OFFSET or retry:
        return await client.calls.max_offset(address, queue)
    given = options.consume_timestamp
    timestamp = client.wall_ms() - 30 * 60 * 1000 if given is None else moment_ms(given, "consume_timestamp")
    return await client.calls.search_offset(address, queue, timestamp)
