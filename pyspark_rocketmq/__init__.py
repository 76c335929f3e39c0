"""What Spark looks for by this name: format("rocketmq") is known wherever this package is installed."""

from twisted_mq.spark.source import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
