"""Some thousands of generated frames against live servers; `make fuzz` sends a million."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import attrs

from tests.fuzz.cases import FRAMES, SEED
from tests.fuzz.frames import LEFT_OUT, FrameMaker
from tests.fuzz.http2 import PREFACE, ClientMaker
from tests.fuzz.run import Servers, fuzz, makers_of, stranger
from tests.support.grpc_wire import Wire
from tests.twisted_mq.proxy.test_together import Served
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.proxy import messages as v2

FIRST_ROUND = int(os.environ.get("MQ_FUZZ_ROUND", "0"))


def test_strangers_frames_neither_stop_the_servers_nor_reach_the_honest_client(tmp_path: Path) -> None:
    outcome = fuzz(FRAMES, SEED, tmp_path, FIRST_ROUND)
    print(attrs.asdict(outcome))
    assert (outcome.faults, outcome.inconsistencies, outcome.exit_status) == ([], [], 0)
    assert outcome.frames >= FRAMES and sum(outcome.answers.values()) > FRAMES // 10 and outcome.honest >= FRAMES // 500
    assert outcome.answers["grpc"] > FRAMES // 40
    assert not (tmp_path / "store" / "abort").exists()


def test_log_of_the_servers_shows_what_they_complain_about(tmp_path: Path) -> None:
    servers = Servers(str(tmp_path / "store"), tmp_path / "servers.log")
    stranger(servers.ports["broker"], [b"\xff" * 100])
    stranger(servers.ports["grpc"], [b"no preface of HTTP/2" * 5])
    assert servers.stop() == 0
    assert all(
        complaint in servers.tail() for complaint in ("WARNING twisted_mq.remoting", "WARNING twisted_mq.proxy.grpc")
    )


def test_one_seed_makes_the_same_frames() -> None:
    first, second = (makers_of(Random("5 0")) for _ in range(2))
    for server in first:
        assert first[server].connection(50) == second[server].connection(50)


def test_calls_of_busy_clients_are_handled_together() -> None:
    served = Served(broker_name="broker-a")
    served.broker.controller.topics.update([TopicConfig("FuzzA", 4, 4)])
    for seed in range(40):
        wire = Wire(dict(served.wire.shared.methods))
        wire.shared.end_of_read = served.wire.shared.end_of_read
        wire.send(b"".join(ClientMaker(Random(seed)).connection(25))[len(PREFACE) :])
        served.broker.clock.advance(0)
    counts = served.port.messaging.counts
    assert served.together > 20
    assert counts["AckMessage", v2.Code.INTERNAL_SERVER_ERROR] > 50, "their records are not stored"


def test_frames_of_all_codes_are_made() -> None:
    maker = FrameMaker(Random(5), ("broker",))
    assert {maker.command().code for _ in range(20_000)} >= set(REQUESTS) - LEFT_OUT
