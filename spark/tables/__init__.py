"""Other files as tables: consume queues, index, timer, configuration, replication, frames, and any construct declaration."""

from twisted_mq.spark.tables.frame_columns import from_frames
from twisted_mq.spark.tables.record_files import register_layout
from twisted_mq.spark.tables.sources import register

__all__ = ["from_frames", "register", "register_layout"]
