"""Which client may consume a queue in order (Apache: RebalanceLockManager). Pure: `now` comes in, decisions go out."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from twisted_mq.protocol.bodies import MessageQueue

LOCK_MAX_LIVE_MS = 60_000
"""A lock that was not renewed for this long is free (Apache: rocketmq.broker.rebalance.lockMaxLiveTime)."""


@attrs.define
class _Lock:
    client_id: str
    renewed_ms: int


class RebalanceLockManager:
    """Locks on message queues by group."""

    def __init__(self, max_live_ms: int = LOCK_MAX_LIVE_MS) -> None:
        self._max_live_ms = max_live_ms
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}

    def try_lock(self, group: str, queues: Iterable[MessageQueue], client_id: str, now_ms: int) -> list[MessageQueue]:
        """The queues that the client holds after this; its own locks are renewed, expired ones change their owner."""
        return [queue for queue in queues if self._take(group, queue, client_id, now_ms)]

    def _drop_expired(self, group: str, now_ms: int) -> None:
        locks = self._groups.get(group, {})
        for queue in [queue for queue, lock in locks.items() if self._expired(lock, now_ms)]:
            del locks[queue]

    def forget_expired(self, now_ms: int) -> None:
        """Free what nobody renews; called now and then, so that groups that are gone take no memory."""
        for group in list(self._groups):
            self._drop_expired(group, now_ms)
            if not self._groups[group]:
                del self._groups[group]

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Free those of the queues that the client holds."""
        locks = self._groups.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]

    def is_all_expired(self, group: str, now_ms: int) -> bool:
        """Whether no client of the group holds a lock, so that it does not consume in order."""
        return all(self._expired(lock, now_ms) for lock in self._groups.get(group, {}).values())

    def owner(self, group: str, queue: MessageQueue, now_ms: int) -> str | None:
        """The client that holds a queue now."""
        held = self._groups.get(group, {}).get(queue)
        return None if held is None or self._expired(held, now_ms) else held.client_id

    def _take(self, group: str, queue: MessageQueue, client_id: str, now_ms: int) -> bool:
        locks = self._groups.setdefault(group, {})
        held = locks.get(queue)
        if held is not None and held.client_id != client_id and not self._expired(held, now_ms):
            return False
        locks[queue] = _Lock(client_id, now_ms)
        return True

    def _expired(self, lock: _Lock, now_ms: int) -> bool:
        return now_ms - lock.renewed_ms > self._max_live_ms
