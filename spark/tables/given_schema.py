"""Check of a schema that a user gives to a table: it must have exactly the table's columns."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from twisted_mq.spark.errors import WrongOption


def check_schema(columns: Mapping[str, str], schema: StructType) -> None:
    """Check a schema. Raises WrongOption for other columns or types than these."""
    given = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    if given != list(columns.items()):
        declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        raise WrongOption("schema", schema.simpleString(), f"the columns are {declared}; choose columns with select")
