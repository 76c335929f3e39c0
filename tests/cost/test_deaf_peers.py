"""Requests of the broker to peers that read nothing take bounded memory, over real sockets and in a process of its own.

Small requests make a broker send large ones: a message to consume directly, a reply, a notice of each change. 212 KB of requests
made it hold 2.9 GB for a peer that reads nothing.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

from tests.cost.run import Measured, Servers
from tests.fuzz.run import ask
from tests.soak.attacks import frame
from twisted_mq.config.connection_options import MIB
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand

PEERS = 8
LARGE = bytes(3 << 20)
MOST_MIB = 200.0
"""Each peer gets one message, what its socket takes of it, and what it is answered."""
SETTLE_SECONDS = 8.0
REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"


def put_large(port: int) -> int:
    """Send a message of 3 MiB; where it is in the log."""
    fields = dict.fromkeys("defghj", "0") | {"a": "strangers", "b": "Small", "c": "TBW102", "d": "4", "i": ""}
    sent = ask(port, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, LARGE))
    assert sent.code == 0, sent
    return int(sent.ext_fields["msgId"][-16:], 16)


def heartbeat(client_id: str, group: str) -> bytes:
    body = {
        "clientID": client_id, "producerDataSet": [{"groupName": f"P-{client_id}"}],
        "consumerDataSet": [{"groupName": group, "subscriptionDataSet": [{"topic": "Small", "subString": "*"}]}],
    }  # fmt: skip
    return frame(RequestCode.HEART_BEAT, body=json.dumps(body).encode())


def asked_of(client_id: str, large: int) -> bytes:
    """All requests that make the broker send one to this client, or to its group, many times each."""
    named = {"consumerGroup": "G", "clientId": client_id}
    direct = named | {"msgId": f"7F000001000051AF{large:016X}", "brokerName": "broker-a", "topic": "Small"}
    reset = {"topic": "Small", "group": "G", "timestamp": "0", "isForce": "true"}
    return b"".join(
        (
            frame(RequestCode.CONSUME_MESSAGE_DIRECTLY, direct) * 500,
            frame(RequestCode.GET_CONSUMER_RUNNING_INFO, {**named, "jstackEnable": "true"}) * 500,
            frame(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": "Small", "group": "G"}) * 100,
            frame(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset) * 100,
        )
    )


def replies_to(client_id: str) -> bytes:
    fields = {"a": "strangers", "b": REPLY_TOPIC, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 0, "h": 0, "j": 0,
              "i": f"REPLY_TO_CLIENT\x01{client_id}\x02CORRELATION_ID\x01c\x02"}  # fmt: skip
    return frame(RequestCode.SEND_REPLY_MESSAGE_V2, fields, LARGE)


def changes(group: str) -> bytes:
    """A member that comes and goes."""
    leaves = frame(RequestCode.UNREGISTER_CLIENT, {"clientID": "coming", "consumerGroup": group})
    return (heartbeat("coming", group) + leaves) * 500


def deaf(port: int) -> socket.socket:
    """A connection with a small window whose peer reads nothing."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", port))
    return peer


async def besiege(servers: Servers) -> tuple[float, int]:
    """The most memory in MiB, and what an honest client is answered with then."""
    port = servers.ports["broker"]
    large = put_large(port)
    measured = Measured(servers)
    loop = asyncio.get_running_loop()
    peers = [deaf(port) for _ in range(PEERS)]
    for number, peer in enumerate(peers):
        await loop.run_in_executor(None, peer.sendall, heartbeat(f"deaf-{number}", "G"))
    others = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(2 * PEERS)]
    sends = []
    for number, peer in enumerate(others):
        client = f"deaf-{number % PEERS}"
        sent = asked_of(client, large) if number < PEERS else replies_to(client) * 5 + changes("G")
        sends.append(loop.run_in_executor(None, peer.sendall, sent))
    await measured.settle(SETTLE_SECONDS)
    await asyncio.gather(*sends, return_exceptions=True)
    await measured.settle(SETTLE_SECONDS)
    honest = ask(port, RemotingCommand.request(RequestCode.GET_BROKER_CONFIG)).code
    for peer in (*peers, *others):
        peer.close()
    return measured.memory / MIB, honest


def test_peers_that_read_nothing_take_bounded_memory(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    try:
        memory, honest = asyncio.run(besiege(servers))
    finally:
        servers.process.stop()
    assert (honest, memory < MOST_MIB) == (0, True), f"{memory:.0f} MiB\n{servers.process.output_tail()}"
