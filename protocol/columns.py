"""Many records, entries or texts at once: numpy columns, and the view of a buffer that they are taken from."""

from __future__ import annotations

from mmap import mmap
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Entries = npt.NDArray[np.void]
"""A row each, with the fields of a layout."""
Mask = npt.NDArray[np.bool_]
"""A selection of rows."""
Numbers = npt.NDArray[np.signedinteger]
Positions = npt.NDArray[np.int64]
Buffer: TypeAlias = bytes | mmap | Bytes


def window(data: Buffer, dtype: npt.DTypeLike) -> Entries:
    """Return an element of `dtype` at every byte of the buffer except the last few; indexing copies, at any alignment."""
    kind = np.dtype(dtype)
    return np.ndarray((max(0, len(data) - kind.itemsize + 1),), kind, data, 0, (1,))
