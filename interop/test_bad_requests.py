"""Requests with one thing wrong, for each code that this project's broker serves: refused with Apache's codes."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.bad_requests import BadRequest, bad_requests, is_malformed
from interop.peers.servers import COMMANDS, Cluster, ask, running
from interop.recorded import Recording
from tests.support.codes_table import served_here

TOPIC, GROUP = "BadRequestTopic", "BadRequestGroup"
NO_NAMELESS_GROUP = "no group has an empty name here"
RECORDED = Recording.named("bad_requests")
SYSTEM_ERROR, NOT_SUPPORTED = 1, 3
DIFFERENT = {
    "QUERY_MESSAGE with maxNum=-2147483648": (22, "Apache cannot make an array of this size"),
    "POP_MESSAGE with maxMsgNums=-2147483648": (210, "Apache cannot make an array of this size"),
    "PEEK_MESSAGE with maxMsgNums=-2147483648": (19, "Apache cannot make an array of this size"),
    "PEEK_MESSAGE with maxMsgNums=2147483647": (0, "Apache cannot make an array of this size"),
    "UPDATE_AND_CREATE_TOPIC with readQueueNums=-2147483648": (29, "Apache creates such a topic"),
    "UPDATE_AND_CREATE_TOPIC with readQueueNums=2147483647": (29, "Apache creates such a topic"),
    "UPDATE_AND_CREATE_TOPIC with writeQueueNums=-2147483648": (29, "Apache creates such a topic"),
    "UPDATE_AND_CREATE_TOPIC with writeQueueNums=2147483647": (29, "Apache creates such a topic"),
    "UPDATE_AND_CREATE_STATIC_TOPIC with no body": (1, "Apache creates the topic without a mapping"),
    "UPDATE_COLD_DATA_FLOW_CTR_CONFIG with a damaged body": (29, "Apache skips lines that are no thresholds"),
    "UPDATE_BROKER_CONFIG with a damaged body": (16, "Apache skips keys that it does not know"),
    "CHECK_CLIENT_CONFIG with no body": (1, "Apache takes it for a client without a subscription"),
    "CONSUMER_SEND_MSG_BACK with delayLevel=-2147483648": (0, "Apache adds the number of tries and fails"),
    "CONSUMER_SEND_MSG_BACK with group=''": (26, NO_NAMELESS_GROUP),
    "QUERY_SUBSCRIPTION_BY_CONSUMER with group='NoSuchGroup'": (0, "Apache fails over the absent group"),
    "QUERY_SUBSCRIPTION_BY_CONSUMER with group=''": (0, "Apache fails over the absent group"),
    "GET_SUBSCRIPTIONGROUP_CONFIG with group='NoSuchGroup'": (26, "Apache creates the group"),
    "GET_SUBSCRIPTIONGROUP_CONFIG with group=''": (26, NO_NAMELESS_GROUP),
    "PULL_MESSAGE with consumerGroup=''": (26, NO_NAMELESS_GROUP),
    "LITE_PULL_MESSAGE with consumerGroup=''": (26, NO_NAMELESS_GROUP),
    "PEEK_MESSAGE with consumerGroup=''": (26, NO_NAMELESS_GROUP),
    "NOTIFICATION with consumerGroup=''": (26, NO_NAMELESS_GROUP),
    "POLLING_INFO with consumerGroup=''": (26, NO_NAMELESS_GROUP),
    "POP_MESSAGE with consumerGroup=''": (26, NO_NAMELESS_GROUP),
    "POP_MESSAGE with invisibleTime=9223372036854775807": (29, "Apache hands out messages that never return"),
    "POP_MESSAGE with invisibleTime=-9223372036854775808": (29, "Apache hands out messages that return at once"),
    "POP_MESSAGE with pollTime=-9223372036854775808": (210, "Apache's sum overflows"),
}
"""Requests with another code of this broker: its code, and the reason."""

VARYING = {
    "POP_MESSAGE with bornTime=9223372036854775807": {0, 210},
    "POP_MESSAGE with initMode=2147483647": {0, 210},
}
"""A message that was popped for 0 ms just before is back already, or not yet: at both brokers."""

NOT_NEEDED = {
    "CHECK_ROCKSDB_CQ_WRITE_PROGRESS with no topic",
    "POP_MESSAGE with no bornTime",
    "NOTIFICATION with no bornTime",
}
"""Fields that Apache's headers require and its broker does not read: served by both."""


def code_of_ours(request: BadRequest, apaches: int) -> int:
    """The code with which this project's broker answers.

    It refuses malformed fields, which Apache's reads as null; requests about users are served only by brokers that have some
    (tests/twisted_mq/access, interop/test_access).
    """
    if request.name in DIFFERENT:
        return DIFFERENT[request.name][0]
    if is_malformed(request) and request.name not in NOT_NEEDED:
        return SYSTEM_ERROR
    return NOT_SUPPORTED if request.name.startswith("AUTH_") else apaches


def all_requests() -> list[BadRequest]:
    return list(bad_requests(served_here()["broker"], TOPIC, GROUP))


class Line:
    """A connection for many requests."""

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
        """Return the code of the answer; requests of the broker are skipped."""
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
    """Servers of their own: what a bad request leaves behind must not meet other tests. Replies go to any topic, as Apache's."""
    with running(Cluster(request.param, tmp_path, settings={"replyToAnyTopicEnable": "true"})) as servers:
        yield servers


@pytest.mark.peer
def test_bad_requests_have_apaches_codes(cluster: Cluster) -> None:
    topic = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}
    ask(cluster.broker_port, 17, topic | {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"})
    ask(cluster.broker_port, 200, body=json.dumps({"groupName": GROUP}).encode())
    with Line(cluster.broker_port) as line:
        codes = {request.name: line.ask(request) for request in all_requests()}
    for name, possible in VARYING.items():
        assert codes.pop(name) in possible, name
    expected = {}
    for request in all_requests():
        if request.name in codes:
            apaches = RECORDED.apaches(request.name, codes[request.name], cluster.kind)
            expected[request.name] = apaches if cluster.kind == "apache" else code_of_ours(request, apaches)
    assert codes == expected


def test_the_recording_answers_every_request_and_no_other() -> None:
    names = [request.name for request in all_requests()]
    assert len(set(names)) == len(names)
    assert RECORDED.questions() == set(names) - VARYING.keys()


def test_each_exception_is_still_one() -> None:
    """An exception for a request that is no longer sent, or that both brokers answer alike, would hide the next fault."""
    requests = {request.name: request for request in all_requests()}
    assert requests.keys() >= DIFFERENT.keys() | VARYING.keys() | NOT_NEEDED
    alike = [name for name, (code, _) in DIFFERENT.items() if RECORDED.apaches(name, None, "ours") == code]
    assert alike == []
    assert all(is_malformed(requests[name]) for name in NOT_NEEDED)
