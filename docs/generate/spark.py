"""Options and columns of the Spark source."""

from __future__ import annotations

import inspect

from docs.generate.tables import code, table
from twisted_mq.spark.columns.schema import COLUMNS
from twisted_mq.spark.source.options import ReadOptions


def options() -> str:
    """The table that the options class has in its docstring."""
    lines = (inspect.getdoc(ReadOptions) or "").splitlines()
    return "".join(f"{line}\n" for line in lines if line.startswith("|"))


def columns() -> str:
    rows = ((code(one.name), code(one.type), code(one.field), one.meaning) for one in COLUMNS)
    return table(("column", "type", "field of the record", "meaning"), rows)
