"""A topic on servers of its own, a producer that sends to it, and a driver whose stream writes it into Parquet."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import TracebackType

from interop.peers.process import Process, wait_until
from interop.peers.servers import Cluster
from tests.spark.live.brokers import Broker
from tests.spark_proof.driver import CHECKPOINT
from tests.spark_proof.processes import Driver
from tests.spark_proof.producer import Producer
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.live.offset_maps import flat

QUEUES = 2
PATIENCE_SECONDS = 600.0


class Servers(Cluster):
    """Daemons with a store that lasts."""

    @property
    def broker_process(self) -> Process:
        assert self._broker is not None
        return self._broker


def started_servers(directory: Path) -> tuple[Servers, Broker]:
    """Both are up."""
    servers = Servers("ours", directory)
    servers.start()
    return servers, Broker(servers.name_server, servers.broker, store=str(servers.store))


class StreamUnderLoad:
    """Runs in an empty directory until the block ends."""

    def __init__(self, directory: Path, seed: int, per_second: float, **options: str) -> None:
        self.out = directory
        self.random = random.Random(seed)
        self.servers, self.broker = started_servers(directory / "servers")
        self.topic = self.broker.topic(QUEUES)
        self.servers.wait_route(self.topic)
        addresses = self.servers.name_server, self.servers.broker
        self.producer = Producer(*addresses, self.topic, QUEUES, per_second)
        given = {"nameServer": addresses[0], "topic": self.topic, "startingOffsets": "earliest", "tries": "20"}
        spec = {"out": str(directory), "options": given | options, "tries": 8}
        self.driver = Driver("stream", spec, directory / "driver.log", self.random)

    def __enter__(self) -> StreamUnderLoad:
        self.driver.start()
        self.producer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.producer.stop()
        if self.driver.is_running:
            self.driver.kill()
        self.servers.stop()

    def last_batch(self) -> int:
        """The last one that the checkpoint says is done; -1 before the first."""
        commits = self.out / CHECKPOINT / "commits"
        names = [path.name for path in commits.iterdir()] if commits.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def wait_batch(self, behind: int) -> None:
        """Until a batch behind this one is done. Raises PeerFailed where it comes to none."""

        def done() -> bool:
            self.driver.check()
            return self.last_batch() > behind

        wait_until(done, lambda: f"a batch behind {behind}\n{self.driver.process.output_tail()}", PATIENCE_SECONDS)

    def wait_read(self, ends: list[int]) -> None:
        """Until these offsets of the queues are where a batch that is done ends."""
        wanted = {MessageQueue(self.topic, self.broker.name, queue): end for queue, end in enumerate(ends)}

        def reached() -> bool:
            self.driver.check()
            planned = (self.out / CHECKPOINT / "offsets" / str(self.last_batch())).read_text().splitlines()[-1]
            return flat(json.loads(planned)) == wanted

        wait_until(reached, lambda: f"{wanted} is read\n{self.driver.process.output_tail()}", PATIENCE_SECONDS)
