"""A file system without inodes: what needs a new file is refused for now, nothing that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.servers import Cluster
from twisted_mq.blocking import Message, Producer, ProducerOptions
from twisted_mq.client import ClientError
from twisted_mq.storage.columns.walk import LogFiles
from twisted_mq.storage.tools.filters import RecordFilter, SelectedMessages

INODES = 2000
TOPIC = "Inodes"


class OnSmallDisk(Cluster):
    """Servers whose store is on a file system of its own."""

    @property
    def store(self) -> Path:
        return self.directory / "disk" / "store"

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeConsumeQueue": 2000}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size=512m,nr_inodes={INODES}", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this process may not mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def take_all(place: Path) -> None:
    """Make files until there is no inode left."""
    place.mkdir()
    number = 0
    try:
        while True:
            (place / str(number)).touch()
            number += 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def test_broker_lives_without_inodes_and_loses_nothing(tmp_path: Path, disk: Path) -> None:
    servers = OnSmallDisk("ours", tmp_path)
    acknowledged: list[bytes] = []
    refused = 0
    try:
        servers.start()
        options = ProducerOptions(send_timeout_seconds=5.0)
        with Producer(servers.name_server, group="p", options=options) as producer:

            def send(number: int, topic: str = TOPIC) -> None:
                body = b"%d " % number + bytes(20_000)
                producer.send(Message(topic, body))
                if topic == TOPIC:
                    acknowledged.append(body[:10])

            for number in range(20):
                send(number)
            take_all(disk / "others")
            for number in range(20, 120):  # two files of the log, and many of its queues
                try:
                    send(number, TOPIC if number % 20 else f"New{number}")
                except ClientError:
                    refused += 1
                    if refused > 3:
                        break
            for one in (disk / "others").iterdir():
                one.unlink()
            for number in range(200, 230):
                with contextlib.suppress(ClientError):
                    send(number)
            before = len(acknowledged)
            send(1000)
            assert len(acknowledged) == before + 1
        assert servers.stop_broker() in (0, -15)
        found = {
            message.body[:10] for message in SelectedMessages(LogFiles(str(servers.store), None), RecordFilter([TOPIC]))
        }
        assert set(acknowledged) <= found
    finally:
        servers.stop()
    assert refused
