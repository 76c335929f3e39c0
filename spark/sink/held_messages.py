"""The messages of one partition, held until all of its rows are known to be valid."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Iterator
from typing import IO

from twisted_mq.spark.sink.columns import Outgoing

MOST_BYTES = 64 << 20
"""Limit of bytes in memory; more are written to a temporary file."""
_DIGEST_BYTES = 16


class HeldMessages:
    """Messages in order. `digest` identifies the set of messages, in any order, and the source of their ids."""

    def __init__(self, source: str, most_bytes: int = MOST_BYTES) -> None:
        """`source`: prefix of the ids that the sink creates for the partition's rows."""
        self._source = source.encode()
        self._most_bytes = most_bytes
        self._messages: list[Outgoing] = []
        self._size = 0
        self._file: IO[bytes] | None = None
        self._sum = 0

    def add(self, message: Outgoing) -> None:
        self._messages.append(message)
        self._size += len(message.body) + len(message.properties)
        self._sum += self._hash(message)
        if self._size > self._most_bytes:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - close() ends it
            pickle.dump(self._messages, self._file, pickle.HIGHEST_PROTOCOL)
            self._messages, self._size = [], 0

    def _hash(self, message: Outgoing) -> int:
        """Return a hash of everything except the row's number, which depends on the order of the rows."""
        properties = message.properties.replace(b"%s-%d\x02" % (self._source, message.row), b"\x02")
        text = pickle.dumps((message.topic, message.place, properties, message.body))
        return int(hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest(), 16)

    @property
    def digest(self) -> str:
        source = hashlib.blake2b(self._source, digest_size=_DIGEST_BYTES).hexdigest()
        return f"{source}-{self._sum % (1 << 8 * _DIGEST_BYTES):0{2 * _DIGEST_BYTES}x}"

    def __iter__(self) -> Iterator[Outgoing]:
        if self._file is not None:
            end = self._file.tell()
            self._file.seek(0)
            while self._file.tell() < end:
                yield from pickle.load(self._file)
        yield from self._messages

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
