"""Entries of a consume queue as numpy takes them apart; without copying.

ROWS     an entry a row, the fields of QUEUE_ENTRY
TAGS     the low 32 bits of each entry's tags code, its last field: only these tell the codes of tags apart (Apache: ConsumeQueue)
"""

from __future__ import annotations

import numpy as np

from twisted_mq.protocol.layouts.derive import derive_dtype, field_offset
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, QUEUE_ENTRY

ROWS = derive_dtype(QUEUE_ENTRY)
TAGS = np.dtype(
    {
        "names": ["tags"],
        "formats": [">i4"],
        "offsets": [field_offset(QUEUE_ENTRY, "tags_code") + 4],
        "itemsize": ENTRY_BYTES,
    }
)
