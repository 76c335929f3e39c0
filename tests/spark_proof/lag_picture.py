"""The picture of a stream's lag in docs/: `python -m tests.spark_proof.lag_picture docs/pictures/spark-lag.png`.

A stream of at most 2,000 messages a batch reads two queues, into which 20,000 messages come at once. The metrics are read each
half second.
"""

from __future__ import annotations

import sys
import tempfile
import time

import matplotlib
from prometheus_client import CollectorRegistry

from tests.spark.live.brokers import Broker
from tests.support.embedded import EmbeddedProcess
from twisted_mq.spark.metrics import StreamMetrics, watch
from twisted_mq.spark.session import local_session

MOST_SECONDS = 400.0
MESSAGES = (12_000, 8_000)
"""In the burst, by queue."""
Samples = list[tuple[float, float, float, float]]
"""Seconds since the burst, lag of each of both queues, rows a second."""


def measure(directory: str) -> Samples:
    """The metrics while the stream works the burst off."""
    registry = CollectorRegistry()
    session = local_session("lag", cores=2, settings={"spark.sql.shuffle.partitions": "2"})
    metrics = watch(session, registry=registry)
    with EmbeddedProcess(f"{directory}/store") as server:
        broker = Broker(server.name_server, server.broker)
        topic = broker.topic(2, "Orders")
        options = {"nameServer": broker.name_server, "subscribe": topic, "maxOffsetsPerTrigger": "2000"}
        stream = session.readStream.format("rocketmq").options(**options, startingOffsets="earliest").load()
        broker.send(topic, [b"first"])
        query = stream.writeStream.format("noop").queryName("orders")
        running = query.option("checkpointLocation", f"{directory}/checkpoint").start()
        running.processAllAvailable()
        for queue, count in enumerate(MESSAGES):
            broker.send(topic, [b"%0100d" % number for number in range(count)], queue)
        found = _sampled(metrics)
        running.stop()
    session.stop()
    return found


def _sampled(metrics: StreamMetrics) -> Samples:
    """The metrics each half second until all rows are read."""
    found: Samples = []
    began = time.monotonic()
    while (now := time.monotonic() - began) < MOST_SECONDS:
        samples = [sample for metric in metrics.collect() for sample in metric.samples]
        lags = {one.labels["queue"]: one.value for one in samples if one.name == "mq_spark_lag_messages"}
        plain = {one.name: one.value for one in samples}
        found.append((now, lags["0"], lags["1"], plain["mq_spark_processed_rows_per_second"]))
        if plain["mq_spark_rows_total"] > sum(MESSAGES):
            break
        time.sleep(0.5)
    return found


def draw(samples: Samples, path: str) -> None:
    """Lag above, rate below."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 5))
    seconds = [sample[0] for sample in samples]
    for queue in (0, 1):
        above.step(seconds, [sample[1 + queue] for sample in samples], where="post", label=f"queue {queue}")
    above.set_ylabel("mq_spark_lag_messages")
    above.legend()
    below.step(seconds, [sample[3] for sample in samples], where="post", color="tab:green")
    below.set_ylabel("processed rows/s")
    below.set_xlabel("seconds since the burst")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="spark-proof-") as directory:
        draw(measure(directory), sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
