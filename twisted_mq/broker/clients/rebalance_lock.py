"""Decides which client may consume a queue in order (Apache: RebalanceLockManager). Pure: `now` comes in, decisions go out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.remoting.budget import may_have

LOCK_MAX_LIVE_MS = 60_000
"""A lock that was not renewed for this long is free (Apache: rocketmq.broker.rebalance.lockMaxLiveTime)."""
MOST_LOCKS = 300_000
"""The limit of locks of all groups, about 100 MiB. Apache has no limit."""
MOST_FORGOTTEN = 50_000
"""The limit of expired locks that are freed in one turn, about 20 ms."""


@attrs.define
class _Lock:
    client_id: str
    renewed_ms: int
    address: str


class RebalanceLockManager:
    """Locks on message queues by group, in the order in which they were renewed.

    A new lock counts for the share of its address, see `remoting.shares`; past the limit, the client does not get it.
    """

    def __init__(self, max_live_ms: int = LOCK_MAX_LIVE_MS, most: int = MOST_LOCKS) -> None:
        self._max_live_ms = max_live_ms
        self._most = most
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}
        self._held_by: Counter[str] = Counter()
        self.count = 0

    def try_lock(
        self, group: str, queues: Iterable[MessageQueue], client_id: str, now_ms: int, address: str = ""
    ) -> list[MessageQueue]:
        """Lock queues. Returns those that the client holds now; its own locks are renewed, expired ones change owner."""
        locks = self._groups.setdefault(group, {})
        lock = _Lock(client_id, now_ms, address)
        held = [queue for queue in queues if self._take(locks, queue, lock)]
        self._forget_empty(group)
        return held

    def forget_expired(self, now_ms: int) -> None:
        """Free locks that were not renewed; called at intervals, so that groups that are gone take no memory."""
        left = MOST_FORGOTTEN
        for group, locks in list(self._groups.items()):
            while left and locks:
                queue, oldest = next(iter(locks.items()))
                if not self._expired(oldest, now_ms):
                    break
                self._free(locks, queue)
                left -= 1
            self._forget_empty(group)

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Free the queues that the client holds."""
        locks = self._groups.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                self._free(locks, queue)
        self._forget_empty(group)

    def is_all_expired(self, group: str, now_ms: int) -> bool:
        """Return True if no client of the group holds a lock, so that the group does not consume in order."""
        locks = self._groups.get(group)
        return not locks or self._expired(locks[next(reversed(locks))], now_ms)

    def owner(self, group: str, queue: MessageQueue, now_ms: int) -> str | None:
        """Return the client that holds a queue now."""
        held = self._groups.get(group, {}).get(queue)
        return None if held is None or self._expired(held, now_ms) else held.client_id

    def _take(self, locks: dict[MessageQueue, _Lock], queue: MessageQueue, lock: _Lock) -> bool:
        held = locks.get(queue)
        if held is None:
            if not may_have(self._held_by[lock.address], self.count, self._most):
                return False
        elif held.client_id != lock.client_id and not self._expired(held, lock.renewed_ms):
            return False
        else:
            self._free(locks, queue)
        locks[queue] = lock
        self._held_by[lock.address] += 1
        self.count += 1
        return True

    def _free(self, locks: dict[MessageQueue, _Lock], queue: MessageQueue) -> None:
        address = locks.pop(queue).address
        self.count -= 1
        self._held_by[address] -= 1
        if not self._held_by[address]:
            del self._held_by[address]

    def _forget_empty(self, group: str) -> None:
        if not self._groups.get(group, True):
            del self._groups[group]

    def _expired(self, lock: _Lock, now_ms: int) -> bool:
        return now_ms - lock.renewed_ms > self._max_live_ms
