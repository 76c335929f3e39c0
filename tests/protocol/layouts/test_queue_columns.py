"""Entries of a consume queue in columns have the values that their layout builds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.queue_columns import ROWS, TAGS
from twisted_mq.protocol.layouts.queue_entry import QUEUE_ENTRY

ENTRIES = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(ENTRIES, min_size=1, max_size=5))
def test_columns_are_the_fields_of_the_entries(entries: list[tuple[int, int, int]]) -> None:
    names = "physical_offset", "size", "tags_code"
    data = b"".join(QUEUE_ENTRY.build(dict(zip(names, entry, strict=True))) for entry in entries)
    assert np.frombuffer(data, ROWS)[[*names]].tolist() == entries
    low_words = [(code & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 for _, _, code in entries]
    assert np.frombuffer(data, TAGS)["tags"].tolist() == low_words
