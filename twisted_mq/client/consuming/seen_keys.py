"""Remembers which messages were handled, so that a repeated message is not handled again.

A key is begun, then done or given up. While it is begun, another process that has the same message waits by sending the
message back. If a process dies in between, its key stays begun for `lease_seconds`.
"""

from __future__ import annotations

import collections
import enum
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from twisted_mq.client.core.errors import ClientError
from twisted_mq.protocol.messages.message import MessageExt

KEEP_SECONDS = 3 * 24 * 3600.0
"""Brokers keep messages for three days by default (fileReservedTime)."""
LEASE_SECONDS = 15 * 60.0
"""The default time that a consumer may take for a message (consume_timeout_seconds)."""
MOST_KEYS = 100_000


class Seen(enum.Enum):
    """The state of a key in a store."""

    NEW = "new"
    BEGUN = "begun"
    DONE = "done"


class SeenKeys(Protocol):
    """A store of keys. Yours may be a table beside the data that your handler writes."""

    def begin(self, key: str) -> Seen:
        """Begin work on the key. Return its state before: only NEW begins it, the other states change nothing."""

    def done(self, key: str) -> None:
        """Mark the work as done."""

    def give_up(self, key: str) -> None:
        """Forget a key whose work failed."""


class HandledElsewhere(ClientError):
    """Another consumer handles the same message now: send it back, and it comes again."""


def message_key(message: MessageExt) -> str:
    """Return what identifies a message however often it comes: its topic and the key that its producer gave it once."""
    return f"{message.topic}/{message.unique_key or message.msg_id}"


class SeenInMemory:
    """A store for one process: the newest keys, lost when it ends."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._keys: collections.OrderedDict[str, Seen] = collections.OrderedDict()

    def begin(self, key: str) -> Seen:
        with self._lock:
            known = self._keys.get(key)
            if known is None:
                self._keys[key] = Seen.BEGUN
                if len(self._keys) > self._most:
                    self._keys.popitem(last=False)
            return known or Seen.NEW

    def done(self, key: str) -> None:
        with self._lock:
            self._keys[key] = Seen.DONE

    def give_up(self, key: str) -> None:
        with self._lock:
            self._keys.pop(key, None)


class SeenInSqlite:
    """A store for the processes of one machine: a table in a SQLite file, which survives them."""

    def __init__(
        self,
        path: str | Path,
        *,
        keep_seconds: float = KEEP_SECONDS,
        lease_seconds: float = LEASE_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._keep_seconds, self._lease_seconds, self._now = keep_seconds, lease_seconds, now
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS seen (key TEXT PRIMARY KEY, done INTEGER, until REAL)")
        self._database.execute("CREATE INDEX IF NOT EXISTS seen_until ON seen (until)")

    def begin(self, key: str) -> Seen:
        with self._lock:
            now = self._now()
            self._database.execute("DELETE FROM seen WHERE until <= ?", [now])
            added = self._database.execute(
                "INSERT OR IGNORE INTO seen VALUES (?, 0, ?)", [key, now + self._lease_seconds]
            ).rowcount
            if added:
                return Seen.NEW
            row = self._database.execute("SELECT done FROM seen WHERE key = ?", [key]).fetchone()
            return Seen.DONE if row is not None and row[0] else Seen.BEGUN

    def done(self, key: str) -> None:
        with self._lock:
            until = self._now() + self._keep_seconds
            self._database.execute("INSERT OR REPLACE INTO seen VALUES (?, 1, ?)", [key, until])

    def give_up(self, key: str) -> None:
        with self._lock:
            self._database.execute("DELETE FROM seen WHERE key = ?", [key])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()


class SeenInRedis:
    """A store for many machines: keys in Redis, which expires them. `redis` is a client of the package of that name."""

    def __init__(
        self,
        redis: Any,
        *,
        prefix: str = "mq-seen:",
        keep_seconds: float = KEEP_SECONDS,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._redis, self._prefix = redis, prefix
        self._keep_ms, self._lease_ms = int(keep_seconds * 1000), int(lease_seconds * 1000)

    def begin(self, key: str) -> Seen:
        name = self._prefix + key
        if self._redis.set(name, Seen.BEGUN.value, nx=True, px=self._lease_ms):
            return Seen.NEW
        found = self._redis.get(name)
        text = found.decode() if isinstance(found, bytes) else found
        return Seen.DONE if text == Seen.DONE.value else Seen.BEGUN

    def done(self, key: str) -> None:
        self._redis.set(self._prefix + key, Seen.DONE.value, px=self._keep_ms)

    def give_up(self, key: str) -> None:
        self._redis.delete(self._prefix + key)
