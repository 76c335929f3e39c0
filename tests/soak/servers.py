"""The servers under soak, as processes with a home of their own, and what is read from them while they run and after."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import attrs

from interop.peers.process import Process
from interop.peers.servers import Cluster, our_commands
from tests.fuzz.run import ask
from tests.soak.attacks import BROKER_NAME, HELD_TOPIC, HONEST_TOPIC, LARGE_BYTES, LARGE_TOPIC
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand

ROOT = Path(__file__).parents[2]
LONG_TURN = re.compile(r"long turn: seconds=([\d.]+)(.*)")
BEGINNING = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)
NO_SPACE = "No space left on device"
FAULTS = ("Unhandled", "Traceback (most recent", "request failed", "answer not sent")
QUEUES = 4


class Servers(Cluster):
    """A name server and a broker with small files; the store is in `disk` below the directory."""

    simulated_disk = False

    @property
    def store(self) -> Path:
        return self.directory / "disk" / "store"

    @property
    def ports(self) -> dict[str, int]:
        port = self.broker_port
        return {"broker": port, "fast": port - 2, "ha": port + 1, "namesrv": self.name_server_port}

    @property
    def processes(self) -> dict[str, Process]:
        assert self._broker is not None and self._name_server is not None
        return {"broker": self._broker, "name server": self._name_server}

    def make_topics(self) -> None:
        """The honest topic, and those that strangers need."""
        for topic in (HONEST_TOPIC, HELD_TOPIC, LARGE_TOPIC):
            fields = {
                "topic": topic, "defaultTopic": "TBW102", "readQueueNums": str(QUEUES), "writeQueueNums": str(QUEUES),
                "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
            }  # fmt: skip
            answer = ask(self.broker_port, RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields))
            assert answer.code == 0, answer

    def put_large_message(self) -> int:
        """Send the large message that strangers ask for; where it is in the log."""
        fields = dict.fromkeys("defghj", "0") | {"a": "strangers", "b": LARGE_TOPIC, "c": "TBW102", "d": "4", "i": ""}
        sent = ask(self.broker_port, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, bytes(LARGE_BYTES)))
        assert sent.code == 0, sent
        return int(sent.ext_fields["msgId"][-16:], 16)

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {
            "brokerName": BROKER_NAME,
            "maxMessageSize": 4 << 20,
            "mappedFileSizeCommitLog": 16 << 20,
            "mappedFileSizeConsumeQueue": 20 * 5_000,
            "mappedFileSizeTimerLog": 1 << 20,
            "maxHashSlotNum": 100_000,
            "maxIndexNum": 400_000,
            "reviveInterval": 1000,
            "cleanResourceInterval": 1000,
            "cleanFileForciblyEnable": "false",
        }  # fmt: skip

    def _launch(self, which: int, name: str, port: int) -> Process:
        home = self.directory / "home"
        command = our_commands(home, self.directory / "namesrv.conf", self.directory / "broker.conf")[which]
        if which and self.simulated_disk:
            command = [sys.executable, "-m", "tests.soak.broker", str(self.store.parent), *command[1:]]
        environment = {**os.environ, "HOME": str(home)}
        process = Process.start(command, self.directory / f"{name}.log", ROOT, env=environment)
        process.wait_listening(port)
        return process


def anonymous_mib(process: Process) -> float:
    """Memory that is not of files, of a process that runs."""
    status = Path(f"/proc/{process.child.pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def processor_seconds(process: Process) -> float:
    """Return the processor time of a running process so far, of all processors."""
    fields = Path(f"/proc/{process.child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Log:
    """Log of a server."""

    text: str

    @property
    def _events(self) -> list[str]:
        """With the lines that belong to them."""
        return BEGINNING.split(self.text)

    @property
    def long_turns(self) -> list[tuple[float, str]]:
        """(seconds, which) of each, the longest first."""
        return sorted(((float(seconds), which) for seconds, which in LONG_TURN.findall(self.text)), reverse=True)

    @property
    def no_space(self) -> int:
        """Return the number of times that the disk was full."""
        return sum(NO_SPACE in event for event in self._events)

    @property
    def faults(self) -> list[str]:
        """Return unexpected log lines."""
        return [event for event in self._events if any(word in event for word in FAULTS) and NO_SPACE not in event]
