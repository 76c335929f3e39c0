"""The data source "rocketmq"."""

from twisted_mq.spark.source.data_source import RocketMQDataSource

__all__ = ["RocketMQDataSource"]
