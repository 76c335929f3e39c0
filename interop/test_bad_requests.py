"""Requests with one thing wrong, for each code that this project's broker serves: refused with Apache's codes."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.bad_requests import BadRequest, bad_requests, is_malformed
from interop.peers.requirements import require_java
from interop.peers.servers import COMMANDS, Cluster, ask
from tests.support.codes_table import served_here

pytestmark = pytest.mark.peer

TOPIC, GROUP = "BadRequestTopic", "BadRequestGroup"
OF_APACHE: dict[str, int] = {}
DIFFERENT = {
    "QUERY_MESSAGE with maxNum=-2147483648": "Apache's array cannot have that size",
    "POP_MESSAGE with maxMsgNums=-2147483648": "Apache's array cannot have that size",
    "PEEK_MESSAGE with maxMsgNums=-2147483648": "Apache's array cannot have that size",
    "PEEK_MESSAGE with maxMsgNums=2147483647": "Apache's array cannot have that size",
    "UPDATE_AND_CREATE_TOPIC with readQueueNums=-2147483648": "Apache makes such a topic",
    "UPDATE_AND_CREATE_TOPIC with readQueueNums=2147483647": "Apache makes such a topic",
    "UPDATE_AND_CREATE_TOPIC with writeQueueNums=-2147483648": "Apache makes such a topic",
    "UPDATE_AND_CREATE_TOPIC with writeQueueNums=2147483647": "Apache makes such a topic",
    "UPDATE_AND_CREATE_STATIC_TOPIC with no body": "Apache makes the topic without a mapping",
    "UPDATE_COLD_DATA_FLOW_CTR_CONFIG with a damaged body": "Apache passes over what is no threshold",
    "UPDATE_BROKER_CONFIG with a damaged body": "Apache passes keys over that it does not know",
    "CHECK_CLIENT_CONFIG with no body": "Apache takes it for a client without a subscription",
    "CONSUMER_SEND_MSG_BACK with delayLevel=-2147483648": "Apache adds what the message was tried and fails",
    "QUERY_SUBSCRIPTION_BY_CONSUMER with group='NoSuchGroup'": "Apache fails over the absent group",
    "GET_SUBSCRIPTIONGROUP_CONFIG with group='NoSuchGroup'": "Apache makes the group",
    "POP_MESSAGE with invisibleTime=9223372036854775807": "Apache hands out what never comes back",
    "POP_MESSAGE with invisibleTime=-9223372036854775808": "Apache hands out what is back at once",
    "POP_MESSAGE with pollTime=-9223372036854775808": "Apache's sum overflows",
    "POP_MESSAGE with bornTime=-9223372036854775808": "Apache's sum overflows",
    "POP_MESSAGE with bornTime=9223372036854775807": "what was popped for 0 ms before may be back already, at both",
}
"""Where this broker's code is another one, and why."""


def differs_by_rule(request: BadRequest) -> bool:
    """Malformed fields are refused here, Apache reads null; and there are no groups without a name here. Requests about users
    are served here only by brokers that have some (tests/twisted_mq/access, interop/test_access).
    """
    return is_malformed(request) or "='' " in f"{request.what} " or request.name.startswith("AUTH_")


class Line:
    """One connection for many requests."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._stream = self._socket.makefile("rb")
        self._opaque = 0

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *reason: object) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, request: BadRequest) -> int:
        """The code of the answer; requests of the broker's own are passed over."""
        self._opaque += 1
        header = json.dumps(
            {"code": request.code, "opaque": self._opaque, "language": "JAVA", "version": 479, "flag": 0,
             "extFields": request.fields}
        ).encode()  # fmt: skip
        frame = struct.pack(">II", 4 + len(header) + len(request.body), len(header)) + header + request.body
        self._socket.sendall(frame)
        while True:
            (length,) = struct.unpack(">I", self._stream.read(4))
            data = self._stream.read(length)
            header_bytes = int.from_bytes(data[:4], "big") & 0xFFFFFF
            answer = json.loads(data[4 : 4 + header_bytes])
            if answer["flag"] & 1 and answer["opaque"] == self._opaque:
                return int(answer["code"])


@pytest.fixture(params=list(COMMANDS))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """Servers of their own: what a bad request leaves behind must not meet other tests."""
    if request.param == "apache":
        require_java()
    servers = Cluster(request.param, tmp_path)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


def test_bad_requests_have_apaches_codes(cluster: Cluster) -> None:
    topic = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}
    ask(cluster.broker_port, 17, topic | {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"})
    ask(cluster.broker_port, 200, body=json.dumps({"groupName": GROUP}).encode())
    requests = list(bad_requests(served_here()["broker"], TOPIC, GROUP))
    with Line(cluster.broker_port) as line:
        codes = {request.name: line.ask(request) for request in requests}
    assert len(codes) == len(requests)
    if cluster.kind == "apache":
        OF_APACHE.update(codes)
    compared = [one.name for one in requests if one.name not in DIFFERENT and not differs_by_rule(one)]
    expected = OF_APACHE or codes
    assert {name: codes[name] for name in compared} == {name: expected[name] for name in compared}
