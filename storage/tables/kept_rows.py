"""Keeps the rows of a table as they were last encoded, so that only changed rows are encoded again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import attrs


@attrs.define(eq=False)
class KeptRows:
    """The encoded rows of one table. Any thread may ask; two at a time encode changed rows twice."""

    encode: Callable[[str, object], bytes]
    """Returns the text of a row with its name."""
    _known: dict[str, tuple[object, bytes]] = attrs.field(factory=dict)

    def texts(self, table: Mapping[str, object]) -> Collection[bytes]:
        """Return the rows' texts in the table's order. Rows are compared by identity, not by content: they never change."""
        known, fresh = self._known, {}
        for name, row in table.items():
            before = known.get(name)
            if before is None or before[0] is not row:
                before = row, self.encode(name, row)
            fresh[name] = before
        self._known = fresh
        return [text for _, text in fresh.values()]
