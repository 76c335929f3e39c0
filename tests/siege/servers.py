"""The servers under siege: name server, master with all its ports, and slave, as processes."""

from __future__ import annotations

import json
from pathlib import Path

from interop.peers.process import Process, free_port, wait_until
from tests.fuzz.run import ask
from tests.siege.names import POP_GROUP, POP_TOPIC, TOPICS
from tests.soak.attacks import BROKER_NAME
from tests.soak.servers import Servers
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand

QUEUES = 4
SLAVES = b"slave"


class SiegeServers(Servers):
    """As tests.soak's, with a slave, gRPC and a page of metrics."""

    def __init__(self, directory: Path) -> None:
        super().__init__("ours", directory)
        self._grpc, self._metrics, self._slave_port = free_port(), free_port(), free_port()
        self._slave: Process | None = None

    @property
    def store(self) -> Path:
        return self.directory / "store"

    @property
    def slave_store(self) -> Path:
        """The slave's store."""
        return self.directory / "slave-store"

    @property
    def ports(self) -> dict[str, int]:
        return {**super().ports, "grpc": self._grpc, "metrics": self._metrics}

    @property
    def processes(self) -> dict[str, Process]:
        assert self._slave is not None
        return {**super().processes, "slave": self._slave}

    def start_slave(self) -> None:
        """Start it, and wait until the master serves it."""
        settings = self._broker_settings() | {
            "brokerId": 1, "brokerRole": "SLAVE", "listenPort": self._slave_port, "haListenPort": self._slave_port + 1,
            "storePathRootDir": self.slave_store, "storePathCommitLog": self.slave_store / "commitlog",
            "grpcServerPort": -1, "metricsExporterType": "DISABLE",
        }  # fmt: skip
        self._file("broker.conf", settings)
        self._slave = self._launch(1, "slave", self._slave_port)
        wait_until(self._has_slave, f"the slave follows\n{self._slave.output_tail()}")

    def _has_slave(self) -> bool:
        answer = ask(self.broker_port, RemotingCommand.request(RequestCode.GET_BROKER_HA_STATUS))
        return answer.code == 0 and bool(json.loads(answer.body).get("haConnectionInfo"))

    def make_honest_topics(self) -> None:
        """The topics of the honest load; one group pops."""
        self.make_topics()
        for topic in TOPICS:
            fields = {
                "topic": topic, "defaultTopic": "TBW102", "readQueueNums": str(QUEUES), "writeQueueNums": str(QUEUES),
                "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
            }  # fmt: skip
            assert ask(self.broker_port, RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)).code == 0
        mode = {"topic": POP_TOPIC, "consumerGroup": POP_GROUP, "mode": "POP", "popShareQueueNum": 0}
        command = RemotingCommand.request(RequestCode.SET_MESSAGE_REQUEST_MODE, {}, json.dumps(mode).encode())
        answer = ask(self.broker_port, command)
        assert answer.code == 0, answer
        for topic in TOPICS:
            self.wait_route(topic)

    def wait_route(self, topic: str) -> None:
        wait_until(
            lambda: ask(
                self.name_server_port, RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            ).code == 0,
            f"route of {topic} at {BROKER_NAME}",
        )  # fmt: skip

    def stop(self) -> None:
        if self._slave is not None:
            self._slave.stop()
        super().stop()

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {
            "grpcServerPort": self._grpc,
            "metricsExporterType": "PROM",
            "metricsPromExporterPort": self._metrics,
            "metricsPromExporterHost": "127.0.0.1",
            "transactionTimeOut": 3000,
            "transactionCheckInterval": 3000,
            "transactionCheckMax": 15,
            "haCountRegisteredSlavesOnly": "true",
        }
