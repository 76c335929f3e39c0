"""Columns from a construct declaration, with the names and types of its fields."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from twisted_mq.protocol.columns import Entries
from twisted_mq.protocol.layouts.derive import Field, LayoutError, Run
from twisted_mq.protocol.layouts.derive_values import all_fields

_TYPES = {
    "b": "int", "B": "int", "h": "int", "H": "int", "i": "int", "l": "int", "I": "bigint", "L": "bigint",
    "q": "bigint", "e": "float", "f": "float", "d": "double",
}  # fmt: skip
"""Format of struct -> Spark type. Unsigned numbers of 64 bits have none."""
_ARROW = {
    "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "binary": pa.binary(),
}  # fmt: skip


def spark_type(field: Field) -> str:
    """Return the Spark type of a field. Raises LayoutError for a field without one."""
    if field.format.endswith("s"):
        return "binary"
    if field.format not in _TYPES:
        raise LayoutError(f"no Spark type for {field.name!r}, format {field.format!r}")
    return _TYPES[field.format]


def arrow_type(field: Field) -> pa.DataType:
    """Return the Arrow type that Spark expects for its type. Raises LayoutError."""
    return _ARROW[spark_type(field)]


def layout_ddl(runs: Iterable[Run]) -> str:
    """Return the fields of a struct: `size:int,physical_offset:bigint,body:binary`. Raises LayoutError."""
    return ",".join(f"{field.name}:{spark_type(field)}" for field in all_fields(runs))


def camel_case(name: str) -> str:
    """Return physicalOffset for physical_offset, like the columns of stores."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def entry_columns(entries: Entries) -> dict[str, pa.Array]:
    """Return the numbers of many entries of fixed size, by their column names."""
    names = entries.dtype.names or ()
    return {camel_case(name): pa.array(_native(entries[name])) for name in names}


def _native(column: np.ndarray) -> np.ndarray:
    """Return numbers in the machine's byte order; numbers of 16 bits are widened for Spark."""
    kind = column.dtype.newbyteorder("=")
    return column.astype(np.int32 if kind.itemsize < np.dtype(np.int32).itemsize else kind)
