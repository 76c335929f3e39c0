"""Keeps the index up to date with the log, and answers searches by key (Apache: ReputMessageService, queryMessage).

Indexing lags on purpose: a message is indexed together with some hundred others, when enough have gathered or when there
is time, and a search catches up first. A long backlog, as after a crash, is worked off in steps too; meanwhile searches
see only what is indexed so far, as with Apache.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.index.index_service import IndexService, Report
from twisted_mq.storage.index.key_collector import KeyCollector
from twisted_mq.storage.interfaces import QueryResult
from twisted_mq.storage.log.commit_log import CommitLog

logger = logging.getLogger(__name__)

LAG_BYTES = 512 << 10
"""The bytes of the log that may wait before they are indexed between sends: about 1,600 small messages, 1 ms."""
CATCH_UP_BYTES = 64 << 20
"""The most bytes that a search waits for, about 0.15 s."""
_STEP_BYTES = 1 << 20


class IndexBuilder:
    """Builds one index from one log. `position` is the end of the last indexed record."""

    def __init__(self, log: CommitLog, index: IndexService, *, enabled: bool = True) -> None:
        self.index = index
        self.enabled = enabled
        self._log = log
        self._collector = KeyCollector(log)
        self._resumes = True
        self._blocked = False
        self._seen = 0

    def load(self, safe_timestamp: int | None, report: Report) -> None:
        """Open the index files and continue after the last record in them."""
        self.index.load(self._log, safe_timestamp, report)
        self._collector.position = max(self.index.end_physical_offset, self._log.min_offset)
        self._resumes = True
        self._seen = self._log.max_offset

    @property
    def position(self) -> int:
        """The physical offset after the last record that was indexed."""
        return self._collector.position

    def lags(self) -> bool:
        """Return whether enough bytes wait for a step."""
        return self.enabled and self._log.max_offset - self._collector.position > LAG_BYTES

    def keep_up(self, end: int) -> None:
        """Index a step between sends, once enough lies before `end`; on a slave that may be far from the log's end.

        If a search could no longer catch up, it also indexes as much as was appended.
        """
        if end - self._collector.position <= LAG_BYTES:
            return
        appended, self._seen = end - self._seen, end
        far = end - self._collector.position > CATCH_UP_BYTES
        self.build(end, _STEP_BYTES + max(0, appended) if far else _STEP_BYTES)

    def build(self, end: int, max_bytes: int = _STEP_BYTES) -> bool:
        """Index about `max_bytes` of what lies before `end`; return whether more is left. A full disk is tried again later."""
        stop = min(end, self._collector.position + max_bytes)
        while self.enabled and self._collector.position < stop:
            before = self._collector.position
            if not self._step(end, min(stop - before, _STEP_BYTES)) or self._collector.position == before:
                return False
        return self.enabled and self._collector.position < end

    def _step(self, end: int, max_bytes: int) -> bool:
        before = self._collector.position
        keys = self._collector.collect(end, max_bytes)
        if self._resumes:
            keys = self.index.without_known(keys)
        try:
            self.index.put(keys)
        except (StoreFull, OSError) as error:
            self._collector.position = before
            self._resumes = True
            if not self._blocked:
                logger.error("the index stays behind the log: offset=%d %s", before, error)
            self._blocked = True
            return False
        self._resumes = self._blocked = False
        return True

    def query(
        self, topic: str, key: str, max_count: int, begin: int, end: int, look: Callable[[int], memoryview | None]
    ) -> QueryResult:
        """Return the newest `max_count` records with a key's hash, oldest first; `look` finds a record.

        Records that are no longer in the log are left out.
        """
        offsets = self.index.query_offset(topic, key, max_count, begin, end)
        if not offsets:
            return QueryResult()
        newest = self.index.files[-1]
        records = [record for record in map(look, sorted(offsets)) if record is not None]
        return QueryResult(records, newest.end_timestamp, newest.end_physical_offset)
