"""Sends generated frames to live servers, and looks after them: `python -m tests.fuzz.run --frames 1000000 --seed 7`.

After every few hundred frames an honest client sends a message, pulls it back and asks for its route; what an honest
client gets does not depend on strangers. At the end the servers stop by SIGTERM, and the store is checked.
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
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.storage.check import check_store

ROOT = Path(__file__).parents[2]
A_CONNECTION = 25
"""Frames sent over one connection, unless the server closes it before."""
A_ROUND = 500
"""Frames between two looks of the honest client."""
TIMEOUT_SECONDS = 60.0
HONEST = "HonestTopic"
FAULTS = ("request failed", "Unhandled", "Traceback", "answer not sent")
"""What a log line of a server that met something unforeseen contains."""


@attrs.define
class Outcome:
    """What one run saw."""

    frames: int = 0
    answers: int = 0
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

    def lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()


def stranger(port: int, frames: list[bytes], framed: bool = True) -> int:
    """Send all frames without waiting, read for a moment; how many answers came. Raises FrameError if they are none."""
    decoder, answers = FrameDecoder(), 0
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
        try:
            connection.sendall(b"".join(frames))
            connection.settimeout(0.02)
            while data := connection.recv(1 << 16):
                answers += len(decoder.receive_data(data)) if framed else 0
        except OSError:
            pass
    return answers


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


def one_round(servers: Servers, makers: dict[str, FrameMaker], outcome: Outcome, dice: random.Random) -> None:
    """A few hundred frames from strangers, then a look of the honest client."""
    for _ in range(A_ROUND // A_CONNECTION):
        role = dice.choice(("broker", "broker", "broker", "namesrv", "ha"))
        frames = [makers[role].frame() for _ in range(A_CONNECTION)]
        outcome.answers += stranger(servers.ports[role], frames, framed=role != "ha")
        outcome.frames += len(frames)
    began = time.monotonic()
    honest(servers.ports, outcome.honest)
    outcome.honest += 1
    outcome.slowest_honest_seconds = max(outcome.slowest_honest_seconds, time.monotonic() - began)


def fuzz(frames: int, seed: int, folder: Path) -> Outcome:
    """One run over fresh servers with their store in `folder`."""
    outcome, dice = Outcome(), random.Random(seed)
    store = folder / "store"
    servers = Servers(str(store), folder / "servers.log")
    broker = FrameMaker(dice, ("broker",))
    makers = {"broker": broker, "namesrv": FrameMaker(dice, ("namesrv",)), "ha": broker}
    try:
        while outcome.frames < frames:
            one_round(servers, makers, outcome, dice)
            if sys.stderr.isatty():
                print(f"\r{outcome.frames:,} of {frames:,} frames", end="", file=sys.stderr)
        outcome.resident_mib = servers.resident_mib()
    finally:
        outcome.exit_status = servers.stop()
        lines = servers.lines()
        outcome.faults = [line for line in lines if any(word in line for word in FAULTS)]
        outcome.long_turns = sum("long turn" in line for line in lines)
    outcome.inconsistencies = [str(one) for one in check_store(str(store))]
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="mq-fuzz-") as folder:
        outcome = fuzz(options.frames, options.seed, Path(folder))
        log = (Path(folder) / "servers.log").read_text(errors="replace")
    print(json.dumps(attrs.asdict(outcome), indent=2))
    if outcome.faults:
        print(log[-20_000:], file=sys.stderr)
    sys.exit(bool(outcome.faults or outcome.inconsistencies or outcome.exit_status))


if __name__ == "__main__":
    main()
