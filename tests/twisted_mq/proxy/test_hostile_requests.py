"""Requests with random content, and valid ones with bits changed: each is answered, and an honest client notices nothing."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass

from tests.support.grpc_client import GrpcClient, code, message
from twisted_mq.proxy import messages as v2
from twisted_mq.testing import EmbeddedServer

ROUNDS = int(os.environ.get("MQ_FUZZ_FRAMES", "30000")) // 100
SEED = int(os.environ.get("MQ_FUZZ_SEED", "1"))
TEXTS = (
    "", " ", "T", "G", "a||b", "||", "%RETRY%G", "%DLQ%G", "../..", "\x00", "\x01x\x02", "\ud7ff\u0800", "x" * 300, "TBW102",
    "RMQ_SYS_TRANS_HALF_TOPIC", "0 1795284884053 60000 0 0 broker-a 0 0 0", "0 99999999999999 60000 0 1 broker-a 3 9 9",
    "0 99999999999999 60000 999 2 broker-a -1 -9223372036854775808 9223372036854775807", "1 2 3 4 5 6 7 8", "broker-a", "dm1=",
    "a > 1 AND (b IS NULL", "-1", "9" * 40,
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 4, -1, 31, 1 << 31, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40)
CALLS = [name for name, (_, _, takes_stream, _) in v2.METHODS.items() if not takes_stream and name != "ReceiveMessage"]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(store="memory") as server:
        yield server


def filled(kind: Any, chance: random.Random, depth: int = 0) -> Any:
    """A message of this class with some of its fields set to something."""
    made = kind()
    for field in kind.DESCRIPTOR.fields:
        if chance.random() < 0.25:
            continue
        count = chance.choice((0, 1, 1, 3)) if field.is_repeated else 1
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            for _ in range(count):
                getattr(made, field.name)[chance.choice(TEXTS)] = chance.choice(TEXTS)
        elif entry is not None:
            for _ in range(count if depth < 5 else 0):
                value = filled(GetMessageClass(entry), chance, depth + 1)
                target = getattr(made, field.name)
                target.add().CopyFrom(value) if field.is_repeated else target.CopyFrom(value)
        else:
            values = [scalar(field, chance) for _ in range(count)]
            if field.is_repeated:
                getattr(made, field.name).extend(values)
            else:
                setattr(made, field.name, values[0])
    return made


def scalar(field: Any, chance: random.Random) -> Any:
    if field.cpp_type == field.CPPTYPE_STRING:
        text = chance.choice(TEXTS)
        return text.encode() if field.type == field.TYPE_BYTES else text
    if field.cpp_type == field.CPPTYPE_ENUM:
        return chance.choice([value.number for value in field.enum_type.values])
    if field.cpp_type == field.CPPTYPE_INT32:
        return chance.choice([one for one in NUMBERS if -(1 << 31) <= one < 1 << 31])
    return chance.choice((True, False)) if field.cpp_type == field.CPPTYPE_BOOL else chance.choice(NUMBERS)


def changed(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one of them another, or cut."""
    if not data:
        return chance.randbytes(5)
    place = chance.randrange(len(data))
    return chance.choice((data[:place], data[:place] + chance.randbytes(1) + data[place + 1 :], data + data[:place]))


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
