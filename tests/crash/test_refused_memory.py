"""A broker to which the system refuses memory (RLIMIT_AS): nothing acknowledged is lost, and it goes on with memory."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.process import PeerFailed, Process, wait_until
from interop.peers.servers import COMMANDS, Cluster, ask
from twisted_mq.blocking import Message, Producer, ProducerOptions
from twisted_mq.client import ClientError
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.storage.columns.walk import LogFiles
from twisted_mq.storage.tools.filters import RecordFilter, SelectedMessages

TOPIC = "Memory"
BODY_BYTES = 100_000
FILE_BYTES = 16 << 20
MESSAGES = 2 * FILE_BYTES // BODY_BYTES
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
HALF_FRAMES = 300
FRAME_BYTES = 1_000_000
ENDS_OF_PYTHON = {-signal.SIGSEGV, -signal.SIGABRT}
"""An interpreter that gets no memory for an exception ends like this."""
START_LIMITS_MIB = (60, 120, 180, 240)


class SmallFiles(Cluster):
    """Files of 16 MiB in the log, of the default size in the index (420 MB of address space)."""

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {"mappedFileSizeCommitLog": FILE_BYTES, "maxMessageSize": 1 << 20}

    @property
    def broker_process(self) -> Process:
        assert self._broker is not None
        return self._broker

    def give(self, more: int) -> None:
        """Let the broker have so many more bytes of address space than it has now."""
        pid = self.broker_process.child.pid
        status = Path(f"/proc/{pid}/status").read_text()
        has = int(status.split("VmSize:")[1].split()[0]) * 1024
        resource.prlimit(pid, resource.RLIMIT_AS, (has + more, resource.RLIM_INFINITY))

    def give_all(self) -> None:
        resource.prlimit(self.broker_process.child.pid, resource.RLIMIT_AS, UNLIMITED)

    def stored(self) -> set[bytes]:
        """The numbers of the messages in the log."""
        messages = SelectedMessages(LogFiles(str(self.store), None), RecordFilter([TOPIC]))
        return {message.body.split(b" ")[0] for message in messages}


def found_by_key(servers: SmallFiles, key: str) -> bytes:
    """Return the answer to a search, which catches up with the log first."""
    fields = {"topic": TOPIC, "key": key, "maxNum": "8", "beginTimestamp": "0", "endTimestamp": str(2**63 - 1)}
    return ask(servers.broker_port, RequestCode.QUERY_MESSAGE, fields)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[SmallFiles]:
    servers = SmallFiles("ours", tmp_path)
    try:
        yield servers
    finally:
        servers.stop()


class Load:
    """Sends numbered messages, and keeps those that were acknowledged."""

    def __init__(self, servers: SmallFiles) -> None:
        self.acknowledged: set[bytes] = set()
        self.refused: list[str] = []
        self._producer = Producer(servers.name_server, group="p", options=ProducerOptions(send_timeout_seconds=5.0))
        self.number = 0

    def __enter__(self) -> Load:
        self._producer.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._producer.stop()

    def send(self, count: int, most_refused: int = 3) -> None:
        """Send so many; give up after so many refusals."""
        for _ in range(count):
            self.number += 1
            try:
                self._producer.send(Message(TOPIC, b"%d " % self.number + bytes(BODY_BYTES), keys=(f"k{self.number}",)))
                self.acknowledged.add(b"%d" % self.number)
            except ClientError as error:
                self.refused.append(str(error))
                if len(self.refused) > most_refused:
                    return


@pytest.mark.parametrize(
    ("before", "more", "says", "acknowledged"),
    [
        pytest.param(0, 4 << 20, "store accepts no messages for now: ", 0, id="no file of the log"),
        pytest.param(0, 64 << 20, "the index stays behind the log: ", MESSAGES, id="no file of the index"),
        pytest.param(20, 4 << 20, "", MESSAGES, id="files are there"),
    ],
)
def test_what_needs_more_memory_waits_for_it_and_the_rest_goes_on(
    servers: SmallFiles, before: int, more: int, says: str, acknowledged: int
) -> None:
    """Files are mapped as a whole. A log that cannot be mapped refuses sends; an index comes after when it can be mapped."""
    servers.start()
    with Load(servers) as load:
        load.send(before)
        if before:
            found_by_key(servers, "k1")  # the index has its file
        servers.give(more)
        load.send(MESSAGES, most_refused=1)
        assert len(load.acknowledged) == before + acknowledged
        log = servers.broker_process.output()
        assert log.count("Cannot allocate memory") == (1 if says else 0) and says in log
        servers.give_all()
        load.refused.clear()
        load.send(20)
        assert load.refused == []
        assert b"KEYS\x01k%d" % load.number in found_by_key(servers, f"k{load.number}")
    assert servers.stop_broker() in (0, -signal.SIGTERM)
    assert load.acknowledged <= servers.stored()


def test_nothing_acknowledged_is_lost_when_memory_is_used_up(servers: SmallFiles) -> None:
    """Python's own interpreter may end by a signal then. Started again, the broker has all."""
    servers.start()
    with Load(servers) as load, contextlib.ExitStack() as strangers:
        load.send(20)
        servers.give(8 << 20)
        for _ in range(HALF_FRAMES):
            with contextlib.suppress(OSError):
                stranger = socket.create_connection(("127.0.0.1", servers.broker_port), 1)
                strangers.callback(stranger.close)
                stranger.settimeout(1)
                stranger.sendall(struct.pack(">II", FRAME_BYTES, 100) + bytes(FRAME_BYTES - 200))
        assert "MemoryError" in servers.broker_process.output()
        ended = servers.broker_process.child.poll()
        assert ended is None or ended in ENDS_OF_PYTHON
        strangers.close()
        if ended is None:
            servers.give_all()
        else:
            servers.start_broker()
        load.send(20)
        assert load.refused == []
    assert servers.stop_broker() in (0, -signal.SIGTERM)
    assert load.acknowledged <= servers.stored()


def test_a_start_without_enough_memory_fails_and_leaves_the_store_as_it_was(servers: SmallFiles) -> None:
    servers.start()
    with Load(servers) as load:
        load.send(20)
    assert servers.stop_broker() in (0, -signal.SIGTERM)
    files = (servers.directory / "namesrv.conf", servers.directory / "broker.conf")
    command = COMMANDS["ours"](servers.directory / "home", *files)[1]
    failed = 0
    for limit in START_LIMITS_MIB:
        given = (limit << 20, limit << 20)
        process = Process.start(
            command, servers.directory / f"start-{limit}.log", servers.directory,
            preexec_fn=lambda given=given: resource.setrlimit(resource.RLIMIT_AS, given),
        )  # fmt: skip
        try:
            process.wait_listening(servers.broker_port, 30)
        except PeerFailed:
            failed += 1
            assert process.child.poll() not in (None, 0)
        finally:
            process.stop()
    assert failed
    servers.start_broker()
    wait_until(lambda: servers.broker_process.child.poll() is None, "it runs")
    assert servers.stop_broker() in (0, -signal.SIGTERM)
    assert load.acknowledged <= servers.stored()
