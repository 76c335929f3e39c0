"""Options and columns of the Spark source."""

from __future__ import annotations

import inspect

from docs.generate.tables import code, table
from twisted_mq.spark.columns.schema import COLUMNS
from twisted_mq.spark.live.cluster import Access
from twisted_mq.spark.live.options import LiveOptions
from twisted_mq.spark.sink.options import SinkOptions
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.tables.frame_source import FrameSource


def options() -> str:
    return _table(ReadOptions)


def live_options() -> str:
    return _table(LiveOptions)


def sink_options() -> str:
    return _table(SinkOptions)


def access_options() -> str:
    return _table(Access)


def frame_options() -> str:
    return _table(FrameSource)


def _table(options_class: type) -> str:
    """The one that an options class has in its docstring."""
    lines = (inspect.getdoc(options_class) or "").splitlines()
    return "".join(f"{line}\n" for line in lines if line.startswith("|"))


def columns() -> str:
    rows = ((code(one.name), code(one.type), code(one.field), one.meaning) for one in COLUMNS)
    return table(("column", "type", "field of the record", "meaning"), rows)
