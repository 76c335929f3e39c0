"""The formats of an export."""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.spark.commands.delta_table import DeltaDirectory
from twisted_mq.spark.commands.iceberg_table import IcebergDirectory
from twisted_mq.spark.commands.parquet_directory import ParquetDirectory
from twisted_mq.spark.commands.targets import ExportPlace, Target

TARGETS: dict[str, Callable[[ExportPlace], Target]] = {
    "parquet": ParquetDirectory,
    "iceberg": IcebergDirectory,
    "delta": DeltaDirectory,
}
