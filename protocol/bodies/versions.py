"""The version of a table that is replicated by comparing."""

from __future__ import annotations

import attrs

from twisted_mq.protocol.bodies.types import Int64


@attrs.frozen
class DataVersion:
    """Request body of QUERY_DATA_VERSION. Answer to QUERY_DATA_VERSION. The higher state version is newer, then the
    higher counter, then the later timestamp (ms).
    """

    state_version: Int64 = 0
    timestamp: Int64 = 0
    counter: Int64 = 0

    def next_version(self, now_ms: int, state_version: int = 0) -> DataVersion:
        """Return the version after a change at `now_ms`."""
        return DataVersion(state_version, now_ms, self.counter + 1)
