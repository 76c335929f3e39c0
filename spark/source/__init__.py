"""The data source "rocketmq". It is loaded on demand: a task imports only the reader that it runs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twisted_mq.spark.source.data_source import RocketMQDataSource

__all__ = ["RocketMQDataSource"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from twisted_mq.spark.source import data_source

    return getattr(data_source, name)
