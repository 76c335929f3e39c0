"""Apache RocketMQ's binary files as Spark tables, and jobs over them.

    session.read.format("rocketmq").load("/path/to/store").groupBy("topic").count().show()

Files at rest and, with the option nameServer, live queues; blocking calls and no reactor.
"""

from twisted_mq.extras import require

require("twisted_mq.spark", "spark")
