"""Sends generated frames to live servers, and looks after them: `python -m tests.fuzz.run --frames 1000000 --seed 7`.

Each round has a seed of its own: `--seed 7 --from-round 1200` goes on there, with the same frames. After every few hundred
frames an honest client sends a message, pulls it back and asks for its route; what an honest client gets does not depend
on strangers. At the end the servers stop by SIGTERM, and the store is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attrs

from tests.fuzz.frames import FrameMaker
from tests.fuzz.http2 import ClientMaker
from tests.fuzz.slaves import SlaveMaker
from tests.support.grpc_client import GrpcClient, code
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.storage.check import check_store
from twisted_mq.storage.interfaces import Inconsistency

ROOT = Path(__file__).parents[2]
A_CONNECTION = 25
"""Frames sent over one connection, unless the server closes it before."""
A_ROUND = 500
"""Frames between two looks of the honest client."""
TIMEOUT_SECONDS = 60.0
HONEST = "HonestTopic"
RECEIVES = 20
"""Number of receives of the honest client for its message over gRPC; it gets earlier messages too."""
FAULTS = ("request failed", "Unhandled", "Traceback", "answer not sent")
"""Words in log lines of unexpected failures of a server."""


@attrs.define
class Outcome:
    """Results of a run. A fault occurred in the round before `round`, or a little earlier."""

    seed: int
    round: int
    frames: int = 0
    answers: dict[str, int] = attrs.field(factory=dict)
    """By server."""
    honest: int = 0
    slowest_honest_seconds: float = 0.0
    long_turns: int = 0
    resident_mib: int = 0
    exit_status: int | None = None
    faults: list[str] = attrs.field(factory=list)
    inconsistencies: list[str] = attrs.field(factory=list)


class Servers:
    """The process under test and its ports."""

    def __init__(self, store: str, log: Path) -> None:
        self._log = log
        self._read = 0
        self.long_turns = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.server", store],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=log.open("wb"), text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the servers did not start:\n{log.read_text()}")
        self.ports: dict[str, int] = json.loads(line)

    def resident_mib(self) -> int:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") >> 20

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(TIMEOUT_SECONDS)

    def new_faults(self) -> list[str]:
        """Return new faults in the log since the last call; count its long turns."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            lines = file.read().decode(errors="replace").splitlines()
            self._read = file.tell()
        self.long_turns += sum("long turn" in line for line in lines)
        return [line for line in lines if any(word in line for word in FAULTS)]

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-5000:]


def stranger(port: int, frames: list[bytes]) -> bytes:
    """Send all frames without waiting, read for a moment. Returns what came."""
    received = bytearray()
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
        try:
            connection.sendall(b"".join(frames))
            connection.settimeout(0.02)
            while data := connection.recv(1 << 16):
                received += data
        except OSError:
            pass
    return bytes(received)


def ask(port: int, command: RemotingCommand) -> RemotingCommand:
    """The answer to one request over a connection of its own. Raises OSError."""
    decoder = FrameDecoder()
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        connection.sendall(encode_frame(command))
        while data := connection.recv(1 << 16):
            for answer in decoder.receive_data(data):
                return answer
    raise ConnectionError(f"port {port} closed the connection of code {command.code} without an answer")


def honest(ports: dict[str, int], number: int) -> None:
    """Send a message, and pull it back. Raises AssertionError, OSError."""
    body = b"honest %d" % number
    fields = {
        "a": "honest",
        "b": HONEST,
        "c": "TBW102",
        "d": "1",
        "e": "0",
        "f": "0",
        "g": "0",
        "h": "0",
        "i": "",
        "j": "0",
    }
    sent = ask(ports["broker"], RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, body))
    assert sent.code == ResponseCode.SUCCESS, sent
    pull = {
        "consumerGroup": "honest", "topic": HONEST, "queueId": "0", "queueOffset": sent.ext_fields["queueOffset"],
        "maxMsgNums": "1", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*",
        "subVersion": "0",
    }  # fmt: skip
    found = ask(ports["broker"], RemotingCommand.request(RequestCode.PULL_MESSAGE, pull))
    assert found.code == ResponseCode.SUCCESS and body in found.body, found
    route = ask(ports["namesrv"], RemotingCommand.request(RequestCode.GET_BROKER_CLUSTER_INFO))
    assert route.code == ResponseCode.SUCCESS, route
    honest_grpc(ports["grpc"], b"honest gRPC %d" % number)


def honest_grpc(port: int, body: bytes) -> None:
    """Send a message over gRPC, and receive it. Raises AssertionError, grpc.RpcError."""
    with GrpcClient(f"127.0.0.1:{port}", f"honest-{body.decode()}") as client:
        client.settle_consumer(HONEST, "honest-grpc")
        assert code(client.send(HONEST, body)) == "OK"
        for _ in range(RECEIVES):
            found = client.receive(HONEST, "honest-grpc", TIMEOUT_SECONDS)
            entries = [
                {"message_id": one.system_properties.message_id, "receipt_handle": one.system_properties.receipt_handle}
                for one in found
            ]
            acked = client.call("AckMessage", topic={"name": HONEST}, group={"name": "honest-grpc"}, entries=entries)
            assert code(acked) == "OK", acked
            if body in [one.body for one in found]:
                return
    raise AssertionError(f"{body!r} was not received in {RECEIVES} tries")


ROLES = ("broker", "broker", "broker", "fast", "namesrv", "namesrv", "ha", "grpc", "grpc")
Maker = FrameMaker | SlaveMaker | ClientMaker


def makers_of(dice: random.Random) -> dict[str, Maker]:
    """By server."""
    broker = FrameMaker(dice, ("broker",))
    return {
        "broker": broker,
        "fast": broker,
        "namesrv": FrameMaker(dice, ("namesrv",)),
        "ha": SlaveMaker(dice),
        "grpc": ClientMaker(dice),
    }


def one_round(servers: Servers, outcome: Outcome, dice: random.Random) -> None:
    """A few hundred frames from strangers, then a look of the honest client."""
    makers = makers_of(dice)
    for _ in range(A_ROUND // A_CONNECTION):
        role = dice.choice(ROLES)
        frames = makers[role].connection(A_CONNECTION)
        answers = makers[role].answers(stranger(servers.ports[role], frames))
        outcome.frames += len(frames)
        outcome.answers[role] = outcome.answers.get(role, 0) + answers
    began = time.monotonic()
    honest(servers.ports, outcome.honest)
    outcome.honest += 1
    outcome.slowest_honest_seconds = max(outcome.slowest_honest_seconds, time.monotonic() - began)


def fuzz(frames: int, seed: int, folder: Path, first_round: int = 0) -> Outcome:
    """Run with fresh servers and their store in `folder`; end early at the first fault in their log."""
    outcome = Outcome(seed, first_round)
    store = folder / "store"
    servers = Servers(str(store), folder / "servers.log")
    try:
        while outcome.frames < frames and not outcome.faults:
            one_round(servers, outcome, random.Random(f"{seed} {outcome.round}"))
            outcome.faults = servers.new_faults()
            outcome.round += 1
            if sys.stderr.isatty():
                print(f"\r{outcome.frames:,} of {frames:,} frames", end="", file=sys.stderr)
        outcome.resident_mib = servers.resident_mib()
    except Exception as error:
        raise RuntimeError(f"--seed {seed} --from-round {outcome.round}: {error}\n{servers.tail()}") from error
    finally:
        outcome.exit_status = servers.stop()
    outcome.faults += servers.new_faults()
    outcome.long_turns = servers.long_turns
    outcome.inconsistencies = [str(one) for one in check_store(str(store)) if not of_deleted(one)]
    return outcome


def of_deleted(one: Inconsistency) -> bool:
    """Return True if it may belong to a topic that a client deleted and created again: its old messages correctly have no
    queue."""
    return one.problem.startswith("no entry leads") and one.path.rpartition("/")[0] != HONEST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--from-round", type=int, default=0)
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="mq-fuzz-") as folder:
        outcome = fuzz(options.frames, options.seed, Path(folder), options.from_round)
        log = (Path(folder) / "servers.log").read_text(errors="replace")
    print(json.dumps(attrs.asdict(outcome), indent=2))
    if outcome.faults:
        print(log[-20_000:], file=sys.stderr)
    sys.exit(bool(outcome.faults or outcome.inconsistencies or outcome.exit_status))


if __name__ == "__main__":
    main()
