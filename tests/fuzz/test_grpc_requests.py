"""Requests with random content, and valid ones with bits changed: each is answered, and an honest client notices nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator

import grpc
import pytest

from tests.fuzz.cases import FRAMES, SEED
from tests.fuzz.protobuf import changed, filled
from tests.support.grpc_client import GrpcClient, code, message
from twisted_mq.proxy import messages as v2
from twisted_mq.testing import EmbeddedServer

ROUNDS = max(300, FRAMES // 100)
CALLS = [name for name, (_, _, takes_stream, _) in v2.METHODS.items() if not takes_stream and name != "ReceiveMessage"]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(store="memory") as server:
        yield server


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the proxy logged as its own failures. The broker reports groups that subscribe differently."""
    found = [one for one in caplog.records if one.levelname in ("ERROR", "CRITICAL")]
    return [one.getMessage() for one in found if one.name.startswith("twisted_mq.proxy")]


def test_random_requests_are_answered_and_nothing_fails_unexpectedly(server, caplog):
    topic = server.new_topic("honest")
    chance = random.Random(SEED)
    with GrpcClient(server.grpc) as stranger, GrpcClient(server.grpc) as honest:
        stranger.settle_consumer("T", "G")
        for number in range(ROUNDS):
            name = chance.choice(CALLS)
            request, answer, _, gives_stream = v2.METHODS[name]
            data = filled(v2.message_class(request), chance).SerializeToString()
            if chance.random() < 0.3:
                data = changed(data, chance)
            parse = v2.message_class(answer).FromString
            path = f"/{v2.SERVICE}/{name}"
            try:
                make = stranger.channel.unary_stream if gives_stream else stranger.channel.unary_unary
                found = make(path, bytes, parse)(data, timeout=20, metadata=stranger.metadata)
                assert gives_stream or found.status.code, (number, name, data)
            except grpc.RpcError as error:
                assert error.code() in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL), (number, name, data)
            if number % 50 == 0:
                assert code(honest.call("SendMessage", messages=[message(topic, b"x")])) == "OK"
    assert failures(caplog) == []


def test_random_settings_are_answered_or_end_their_stream(server, caplog):
    chance = random.Random(SEED)
    for _ in range(max(10, ROUNDS // 10)):
        with GrpcClient(server.grpc) as stranger:
            stream = stranger.channel.stream_stream(f"/{v2.SERVICE}/Telemetry", bytes, v2.TelemetryCommand.FromString)
            command = v2.TelemetryCommand(settings=filled(v2.Settings, chance)).SerializeToString()
            try:
                answers = list(stream(iter([command]), timeout=20, metadata=stranger.metadata))
            except grpc.RpcError as error:
                assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL), command
            else:
                assert all(one.status.code for one in answers), command
    with GrpcClient(server.grpc) as honest:
        assert honest.settle_producer("T").status.code == v2.Code.OK
    assert failures(caplog) == []
