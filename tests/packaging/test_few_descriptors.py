"""A broker that may open few files, and strangers who take all connections there are."""

from __future__ import annotations

import re
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.packaging.daemons import RunningDaemon, wait_until
from tests.packaging.test_daemons import LOCAL
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame

LIMIT, STRANGERS, QUEUES = 200, 250, 300


def limited_python(folder: Path) -> str:
    """An interpreter that may have LIMIT descriptors."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nulimit -n {LIMIT}\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return str(script)


def send(link: socket.socket, topic: str, queue_id: int) -> int:
    """The code of a send's answer."""
    fields = {"a": "p", "b": topic, "c": "TBW102", "d": "8", "e": str(queue_id), "f": "0", "g": "0", "h": "0"}
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, {**fields, "i": "", "j": "0"}, b"x")
    link.sendall(encode_frame(request))
    decoder = FrameDecoder()
    while True:
        data = link.recv(65536)
        if not data:
            raise ConnectionResetError("closed by the broker")
        for answer in decoder.receive_data(data):
            return answer.code


def test_strangers_who_hold_all_connections_stop_nobody(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    words = ("mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "store", *LOCAL)
    with RunningDaemon(limited_python(tmp_path), home, *words) as daemon, ExitStack() as links:
        address = ("127.0.0.1", int(re.search(r"registers as 127.0.0.1:(\d+)", daemon.wait_for("registers as"))[1]))
        honest = links.enter_context(socket.create_connection(address, timeout=30))
        assert send(honest, "Before", 0) == 0
        with ExitStack() as strangers:
            for _ in range(STRANGERS):
                strangers.enter_context(socket.create_connection(address, timeout=30))
            daemon.wait_for("connection refused")
            assert send(honest, "Meanwhile", 0) == 0
        wait_until(lambda: _may_connect(address))
        later = links.enter_context(socket.create_connection(address, timeout=30))
        assert {send(later, f"Wide{number // 8}", number % 8) for number in range(QUEUES)} == {0}
        assert daemon.terminate() in (0, -signal.SIGTERM)
    assert "flush failed" not in "\n".join(daemon.lines)
    assert not (home / "store" / "abort").exists()


def _may_connect(address: tuple[str, int]) -> bool:
    with socket.create_connection(address, timeout=30) as link:
        try:
            return send(link, "After", 0) == 0
        except ConnectionError:
            return False
