"""Bytes in a column, parsed with a construct declaration."""

from __future__ import annotations

import functools
from collections.abc import Callable

import construct
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf

from twisted_mq.protocol.layouts.derive import LengthError, Run, derive_runs
from twisted_mq.protocol.layouts.derive_values import Value, all_fields, value_reader
from twisted_mq.spark.tables.layout_columns import arrow_type, layout_ddl


def from_frames(column: Column | str, layout: construct.Struct, *, fail: bool = False) -> Column:
    """Return a struct column with the fields of `layout`, fixed ones and length-prefixed bytes, from a binary column.

        READING = construct.Struct("sensor" / construct.Int32ub, "celsius" / construct.Float32b)
        frame.select(from_frames("body", READING).alias("reading")).select("reading.*")

    Bytes that are not such a record are null, or an error with `fail`. Raises LayoutError for a declaration with other kinds of
    fields.
    """
    runs = tuple(derive_runs(layout))

    def read(data: pa.Array) -> pa.Array:
        return struct_maker(runs, fail)(data)

    made: Column = arrow_udf(read, f"struct<{layout_ddl(runs)}>")(column)  # type: ignore[call-overload]
    return made


@functools.lru_cache(maxsize=16)
def struct_maker(runs: tuple[Run, ...], fail: bool = False) -> Callable[[pa.Array], pa.StructArray]:
    """Return a function from an array of bytes to an array of structs. It has the runs of the declaration, which itself cannot be
    pickled."""
    read = value_reader(runs)
    fields = [pa.field(field.name, arrow_type(field)) for field in all_fields(runs)]

    def row(data: bytes | None) -> tuple[Value, ...] | None:
        if data is None:
            return None
        try:
            return read(data)
        except LengthError:
            if fail:
                raise
            return None

    def make(data: pa.Array) -> pa.StructArray:
        rows = list(map(row, data.to_pylist()))
        columns = zip(*(found or (None,) * len(fields) for found in rows), strict=True) if rows else [()] * len(fields)
        arrays = [pa.array(column, field.type) for field, column in zip(fields, columns, strict=True)]
        return pa.StructArray.from_arrays(
            arrays, fields=fields, mask=pa.array([found is None for found in rows], pa.bool_())
        )

    return make
