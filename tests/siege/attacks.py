"""Attacks in addition to those of tests.soak: the adverse shapes of tests.cost, and requests that would slow down peers at other
ports or other peers' requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from tests.cost.cases import _calls, _http, _resets, _route
from tests.cost.shapes import SHAPES, Shape
from tests.siege.names import HONEST_GROUP, HONEST_PRODUCERS, HONEST_TOPIC
from tests.soak import attacks as soak
from tests.soak.attacks import Attack, Frames, frame, heartbeat, pull, register, send
from tests.support.forged_records import forged_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.framing import encode_frame

LEFT_OUT = frozenset({"large messages", "200,000 topics"})
"""Cases of tests.soak that are about a full disk and a full name server."""
SOON = soak.SOON


def of_shape(shape: Shape) -> Frames:
    """Requests of one adverse shape."""
    return lambda random: b"".join(map(encode_frame, shape.requests()))


def _bytes(data: Callable[[], bytes]) -> Frames:
    return lambda random: data()


def forged_ends(random: Random) -> bytes:
    """Bodies that are shaped like half messages, and ends of transactions that name places in the log."""
    place, body = forged_body(
        random.getrandbits(24), "RMQ_SYS_TRANS_HALF_TOPIC", properties={"REAL_TOPIC": HONEST_TOPIC, "REAL_QID": "0"}
    )
    ends = []
    for offset in (place, random.getrandbits(24), 0, 2**62):
        for decision in (8, 12):
            fields = {
                "producerGroup": HONEST_PRODUCERS, "tranStateTableOffset": random.getrandbits(8), "commitLogOffset": offset,
                "commitOrRollback": decision, "fromTransactionCheck": "false", "msgId": "x",
            }  # fmt: skip
            ends.append(frame(RequestCode.END_TRANSACTION, fields))
    return send("StrangersForged", body) + b"".join(ends)


def others_messages(random: Random) -> bytes:
    """Requests to hand out, copy or answer messages that are another group's."""
    offset = random.getrandbits(24)
    back = {"offset": offset, "group": "strangers", "delayLevel": 0, "originTopic": HONEST_TOPIC, "unitMode": "false"}
    reply = {
        "a": "strangers",
        "b": HONEST_TOPIC,
        "c": "TBW102",
        "d": 8,
        "e": 0,
        "f": 0,
        "g": 0,
        "h": 0,
        "i": "",
        "j": 0,
    }
    return b"".join(
        (
            frame(RequestCode.CONSUMER_SEND_MSG_BACK, back),
            frame(RequestCode.SEND_REPLY_MESSAGE_V2, reply, b"reply"),
            frame(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": offset}),
            frame(RequestCode.UPDATE_CONSUMER_OFFSET, {"consumerGroup": "strangers", "topic": HONEST_TOPIC, "queueId": 0,
                                                       "commitOffset": 2**62}),
        )
    )  # fmt: skip


def asks_itself(random: Random) -> bytes:
    """A consumer that has the broker send requests to it, and reads none."""
    client = f"stranger-deaf-{random.getrandbits(32)}"
    body = json.dumps(
        {"clientID": client, "consumerDataSet": [{"groupName": "strangers-deaf", "subscriptionDataSet": []}]}
    )
    asked = {"consumerGroup": "strangers-deaf", "clientId": client, "jstackEnable": "true"}
    return (
        frame(RequestCode.HEART_BEAT, body=body.encode()) + frame(RequestCode.GET_CONSUMER_RUNNING_INFO, asked) * 5000
    )


def handed_directly(large: int) -> Frames:
    """The same with a message of 3 MiB for each request."""

    def frames(random: Random) -> bytes:
        client = f"stranger-large-{random.getrandbits(32)}"
        body = json.dumps(
            {"clientID": client, "consumerDataSet": [{"groupName": "strangers-large", "subscriptionDataSet": []}]}
        )
        message = f"7F000001000051AF{large:016X}"
        asked = {"consumerGroup": "strangers-large", "clientId": client, "msgId": message, "brokerName": soak.BROKER_NAME,
                 "topic": soak.LARGE_TOPIC}  # fmt: skip
        return (
            frame(RequestCode.HEART_BEAT, body=body.encode())
            + frame(RequestCode.CONSUME_MESSAGE_DIRECTLY, asked) * 1000
        )

    return frames


def many_held(random: Random) -> bytes:
    """As many waiting pulls as one connection may have, and more."""
    return pull(soak.HELD_TOPIC, sysFlag=6, suspendTimeoutMillis=SOON) * 12_000


def many_brokers(random: Random) -> bytes:
    """Registrations of 999 brokers by one connection."""
    return b"".join(register(f"stranger-{number}", f"127.0.0.1:{10_000 + number}", 1) for number in range(999))


def joins_the_group(random: Random) -> bytes:
    """A member of the honest producers' group, and one of the consumers' with another subscription, that does nothing."""
    body = {
        "clientID": "stranger-member",
        "producerDataSet": [{"groupName": f"{HONEST_PRODUCERS}-not"}],
        "consumerDataSet": [],
    }
    return frame(RequestCode.HEART_BEAT, body=json.dumps(body).encode()) + heartbeat([f"{HONEST_GROUP}-not"], "nobody")


def attacks(large: int) -> dict[str, Attack]:
    """All of them, with those of tests.soak."""
    shapes = {
        f"{shape.code}: {shape.name}": Attack("broker", of_shape(shape), 1 if shape.code == RequestCode.SEND_BATCH_MESSAGE else 2,
                                              4, 60 if shape.code == RequestCode.SEND_BATCH_MESSAGE else 15)
        for shape in SHAPES
    }  # fmt: skip
    return {
        **{name: one for name, one in soak.attacks(large).items() if name not in LEFT_OUT},
        **shapes,
        "forged ends": Attack("broker", forged_ends, 5, 2, 2),
        "others' messages": Attack("broker", others_messages, 5, 2, 2),
        "asks itself, reads nothing": Attack("broker", asks_itself, 3, 20, 10, reads=False),
        "handed large messages, reads nothing": Attack("broker", handed_directly(large), 3, 20, 10, reads=False),
        "many held pulls": Attack("broker", many_held, 12, 60, 10),
        "999 brokers": Attack("namesrv", many_brokers, 1, 20, 20),
        "joins groups": Attack("broker", joins_the_group, 3, 10, 5),
        "first reports, HA": Attack("ha", lambda random: bytes(8), 64, 30, 5),
        "half a request, metrics": Attack(
            "metrics", lambda random: b"GET /health HTTP/1.1\r\n", 100, 30, 1, slowly=True
        ),
        "pages, metrics": Attack("metrics", _bytes(_http(b"GET /metrics", count=5)), 2, 5, 10),
        "calls and resets, gRPC": Attack("grpc", _bytes(_resets), 2, 5, 10),
        "routes, gRPC": Attack("grpc", _bytes(_calls("QueryRoute", _route, 90)), 4, 5, 5),
        "nothing, gRPC": Attack("grpc", soak.nothing, 50, 600),
    }
