"""A schema that a user gives to a table: it has all of its columns, others are no columns of it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from twisted_mq.spark.errors import WrongOption


def check_schema(columns: Mapping[str, str], schema: StructType) -> None:
    """Raises WrongOption for a schema of other columns or types than these."""
    given = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    if given != list(columns.items()):
        declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        raise WrongOption("schema", schema.simpleString(), f"the columns are {declared}; choose among them with select")
