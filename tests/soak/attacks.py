"""Attacks of unknown hosts: a table of the bytes of one connection, by name."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from random import Random

import attrs

from tests.fuzz.frames import FrameMaker
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame

HONEST_TOPIC = "Soak"
LARGE_TOPIC = "StrangersLarge"
HELD_TOPIC = "StrangersHeld"
BROKER_NAME = "broker-soak"
LARGE_BYTES = 3 << 20
INVENTED_TOPICS = 500
INVENTED_GROUPS = 10_000
"""All are there after some minutes: what takes more memory then is lost."""
MAX_INT = 2**31 - 1
SOON = 10**15
"""ms that a pull wants to be held."""

Frames = Callable[[Random], bytes]


@attrs.frozen
class Attack:
    """Connections to one server of `broker`, `fast`, `ha`, `namesrv`: each sends its bytes, stays, leaves, and comes again."""

    server: str
    frames: Frames
    connections: int
    stay_seconds: float = 5.0
    pause_seconds: float = 5.0
    reads: bool = True
    slowly: bool = False
    """A byte a second."""


def frame(code: int, fields: dict[str, object] | None = None, body: bytes = b"") -> bytes:
    texts = {name: str(value) for name, value in (fields or {}).items()}
    return encode_frame(RemotingCommand(int(code), ext_fields=texts, body=body, language="JAVA", version=479))


def send(topic: str, body: bytes, *, queue: int = 0, sys_flag: int = 0, **properties: object) -> bytes:
    """A send's frame; a property's name is written with its value."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    fields = {"a": "strangers", "b": topic, "c": "TBW102", "d": 8, "e": queue, "f": sys_flag, "g": 0, "h": 0, "i": text}
    return frame(RequestCode.SEND_MESSAGE_V2, fields | {"j": 0}, body)


def pull(topic: str, **changes: object) -> bytes:
    fields: dict[str, object] = {
        "consumerGroup": "strangers", "topic": topic, "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4,
        "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0,
    }  # fmt: skip
    return frame(RequestCode.PULL_MESSAGE, fields | changes)


def heartbeat(groups: list[str], expression: str = "*", kind: str = "TAG") -> bytes:
    subscription = {"topic": HONEST_TOPIC, "subString": expression, "expressionType": kind, "subVersion": 1}
    consumers = [
        {
            "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": [subscription],
        }
        for group in groups
    ]  # fmt: skip
    body = {"clientID": f"stranger-{groups[0]}", "consumerDataSet": consumers, "producerDataSet": []}
    return frame(RequestCode.HEART_BEAT, body=json.dumps(body).encode())


def view(physical_offset: int) -> bytes:
    return frame(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": physical_offset})


def register(name: str, address: str, topics: int = 0) -> bytes:
    """A registration with so many topics, deflated."""
    text = b'{"counter":1,"stateVersion":0,"timestamp":1}'
    lines = [f"{name}-{number} 4 4 6 SINGLE_TAG {{}}".encode() for number in range(topics)]
    parts = [_sized(text), len(lines).to_bytes(4, "big"), *map(_sized, lines), _sized(b"[]"), bytes(4)]
    body = zlib.compress(b"".join(parts))
    fields = {
        "brokerName": name, "brokerAddr": address, "clusterName": "Strangers", "haServerAddr": address, "brokerId": 0,
        "compressed": "true", "bodyCrc32": zlib.crc32(body) & 0x7FFFFFFF,
    }  # fmt: skip
    return frame(RequestCode.REGISTER_BROKER, fields, body)


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def nothing(random: Random) -> bytes:
    return b""


def damaged(random: Random) -> bytes:
    """A sound frame, then one that lies about its length, or noise."""
    sound = frame(RequestCode.GET_BROKER_RUNTIME_INFO)
    return sound + random.choice(
        (b"\xff" * 8, b"\0\0\0\x08\0\0\xff\xff", sound[:-3] + b"\0" * 40, random.randbytes(200))
    )


def json_bomb(random: Random) -> bytes:
    depth = 50_000
    header = random.choice((b"[" * depth, b'{"a":' * depth, b'{"code":' + b"9" * depth + b"}"))
    nested = frame(RequestCode.HEART_BEAT, body=b'{"consumerDataSet":' + b"[" * depth)
    return nested + (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header


def inflated(random: Random) -> bytes:
    """Registrations and messages that are a thousand times what was sent."""
    bomb = zlib.compress(bytes(64 << 20))
    fields = {"brokerName": "bomb", "brokerAddr": "127.0.0.1:1", "clusterName": "c", "haServerAddr": "", "brokerId": 0}
    return frame(RequestCode.REGISTER_BROKER, fields | {"compressed": "true"}, bomb)


def many_groups(random: Random) -> bytes:
    return heartbeat([f"strangers-{random.randrange(INVENTED_GROUPS)}" for _ in range(random.choice((200, 1000)))])


def many_dashes(random: Random) -> bytes:
    expression = random.choice(("-" * 32_000, "a " + "-" * 8_000 + " b", "(" * 5_000, "NOT " * 5_000, "'" * 9_999))
    group = f"strangers-{random.randrange(50)}"
    return heartbeat([group], expression, "SQL92") + pull(HONEST_TOPIC, subscription=expression, expressionType="SQL92")


def invented_queues(random: Random) -> bytes:
    numbers = [random.getrandbits(31) for _ in range(300)]
    commits = [
        frame(
            RequestCode.UPDATE_CONSUMER_OFFSET,
            {"consumerGroup": "strangers", "topic": LARGE_TOPIC, "queueId": number, "commitOffset": number},
        )
        for number in numbers
    ]
    queues = [{"topic": LARGE_TOPIC, "brokerName": BROKER_NAME, "queueId": number} for number in numbers]
    locks = {"consumerGroup": "strangers", "clientId": "stranger", "mqSet": queues}
    return b"".join(commits) + frame(RequestCode.LOCK_BATCH_MQ, body=json.dumps(locks).encode())


def unused_tag(random: Random) -> bytes:
    return b"".join(
        pull(HONEST_TOPIC, queueId=queue, maxMsgNums=MAX_INT, subscription="nobody") for queue in (0, 1, 2, 3) * 5
    )


def held(random: Random) -> bytes:
    return b"".join(pull(HELD_TOPIC, queueId=number % 4, sysFlag=6, suspendTimeoutMillis=SOON) for number in range(20))


def held_pops(random: Random) -> bytes:
    fields = {
        "consumerGroup": "strangers-pop", "topic": HELD_TOPIC, "queueId": -1, "maxMsgNums": 32, "invisibleTime": SOON,
        "pollTime": SOON, "bornTime": SOON, "initMode": 0, "order": "false",
    }  # fmt: skip
    return frame(RequestCode.POP_MESSAGE, fields) * 20


def new_topics(random: Random) -> bytes:
    return b"".join(send(f"Strangers-{random.randrange(INVENTED_TOPICS)}", b"new") for _ in range(3))


def huge_topics(random: Random) -> bytes:
    """A topic of as many queues as there may be, and more; then its figures; then it goes."""
    fields = {
        "topic": "StrangersWide", "defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0,
        "order": "false", "readQueueNums": 65_535, "writeQueueNums": 65_535,
    }  # fmt: skip
    wide = frame(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    wider = frame(RequestCode.UPDATE_AND_CREATE_TOPIC, fields | {"readQueueNums": MAX_INT, "writeQueueNums": MAX_INT})
    group = {"groupName": "strangers-wide", "retryQueueNums": MAX_INT}
    groups = frame(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps(group).encode())
    back = {
        "offset": 0,
        "group": "strangers-wide",
        "delayLevel": 0,
        "originTopic": "StrangersWide",
        "unitMode": "false",
    }
    named = {"topic": "StrangersWide"}
    return b"".join(
        (wide, wider, groups, frame(RequestCode.CONSUMER_SEND_MSG_BACK, back),
         frame(RequestCode.GET_TOPIC_STATS_INFO, named), frame(RequestCode.DELETE_TOPIC_IN_BROKER, named))
    )  # fmt: skip


def forged(random: Random) -> bytes:
    """Forge messages that only brokers write: the timer's topic, half messages and their ends, the revive log, delayed
    messages."""
    point = {"b": 1, "m": 2**62, "o": -1, "q": -1, "r": 0, "s": 255, "t": HONEST_TOPIC, "c": "soak", "d": [1] * 99}
    itself = {"TIMER_OUT_MS": 1, "REAL_TOPIC": "rmq_sys_wheel_timer", "REAL_QID": 0}
    return b"".join(
        (
            send("rmq_sys_wheel_timer", b"x", **itself),
            send("SCHEDULE_TOPIC_XXXX", b"x", REAL_TOPIC="RMQ_SYS_TRANS_OP_HALF_TOPIC", REAL_QID=0, DELAY=1),
            send("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"0,1,2,x", TAGS="d"),
            send("RMQ_SYS_TRANS_HALF_TOPIC", b"x", REAL_TOPIC=HONEST_TOPIC, REAL_QID=0),
            send("rmq_sys_REVIVE_LOG_DefaultCluster", json.dumps(point).encode(), TAGS="ck"),
            send("rmq_sys_REVIVE_LOG_DefaultCluster", b"{}", TAGS="bAck"),
            send("StrangersTimed", b"x", TIMER_DELAY_MS=-1), send("StrangersTimed", b"x", TIMER_DELIVER_MS=2**62),
            send("StrangersTimed", b"x", TIMER_DELAY_SEC=2), send("StrangersTimed", b"x", DELAY=99),
            send("StrangersTimed", b"x", TRAN_MSG="true", PGROUP="strangers", REAL_TOPIC=HONEST_TOPIC),
        )
    )  # fmt: skip


def large_messages(random: Random) -> bytes:
    """Send large messages that fill the log's files, so that the disk becomes full."""
    return send("StrangersFill", bytes(1 << 20))


def no_zlib(random: Random) -> bytes:
    return send("StrangersZlib", b"no zlib", sys_flag=1) + send("StrangersZlib", bytes(8), queue=MAX_INT)


def long_properties(random: Random) -> bytes:
    return send("StrangersLong", b"x", KEYS="k" * (4 << 20))


def forged_receipts(random: Random) -> bytes:
    fields = {"consumerGroup": "strangers-pop", "topic": HONEST_TOPIC, "queueId": random.choice((0, -1, MAX_INT))}
    receipt = f"{random.getrandbits(40)} 1 1 {random.getrandbits(31)} 0 {BROKER_NAME} 0 {random.getrandbits(40)}"
    ack = fields | {"extraInfo": receipt, "offset": random.getrandbits(40)}
    return frame(RequestCode.ACK_MESSAGE, ack) + frame(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME, ack | {"invisibleTime": SOON}
    )


def other_brokers(random: Random) -> bytes:
    """Send requests that brokers send to each other."""
    told = {"masterHaAddress": "127.0.0.1:9", "masterFlushOffset": 2**62, "masterAddress": "127.0.0.1:9"}
    least = {"minBrokerId": 0, "brokerName": BROKER_NAME, "minBrokerAddr": "127.0.0.1:9", "offlineBrokerAddr": ""}
    return b"".join(
        (
            frame(RequestCode.EXCHANGE_BROKER_HA_INFO, told),
            frame(RequestCode.RESET_MASTER_FLUSH_OFFSET, {"masterFlushOffset": 0}),
            frame(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, least),
        )
    )


def forged_slave(random: Random) -> bytes:
    """Reports of a slave: what it cannot have, the whole log, or noise."""
    reports = [offset.to_bytes(8, "big", signed=True) for offset in (0, 2**62, -1, random.getrandbits(20))]
    return random.choice((*reports, reports[0] * 1000, random.randbytes(100), b"GET / HTTP/1.1\r\n\r\n"))


def all_topics(random: Random) -> bytes:
    return frame(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER) * 60


def forged_brokers(random: Random) -> bytes:
    """The honest broker's name and place for another address; its end."""
    place = {"brokerName": BROKER_NAME, "brokerAddr": "127.0.0.1:9", "clusterName": "DefaultCluster", "brokerId": 0}
    return b"".join(
        (
            register(BROKER_NAME, "127.0.0.1:9", 10), frame(RequestCode.UNREGISTER_BROKER, place),
            frame(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"needWaitForService=true\nwaitSecondsForService=2147483647"),
            frame(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"notifyMinBrokerIdChanged=true"),
        )
    )  # fmt: skip


def key_values(random: Random) -> bytes:
    value = "v" * 100_000
    named = [{"namespace": "strangers", "key": random.getrandbits(32), "value": value} for _ in range(5)]
    return b"".join(frame(RequestCode.PUT_KV_CONFIG, one) for one in named)


def generated(role: str) -> Frames:
    """Frames of all codes, right, odd and damaged."""
    return lambda random: b"".join(map(FrameMaker.frame, [FrameMaker(random, (role,))] * 20))


def attacks(large: int) -> dict[str, Attack]:
    """All of them: more than 1,000 connections are open at a time.

    `large` is where a message of LARGE_BYTES is in the broker's log.
    """
    slow = register("stranger-slow", "127.0.0.1:7", 20)
    return {
        "idle": Attack("broker", nothing, 440, 600),
        "idle, fast port": Attack("fast", nothing, 60, 600),
        "idle, name server": Attack("namesrv", nothing, 80, 600),
        "idle slave": Attack("ha", nothing, 60, 600),
        "byte a second": Attack("broker", lambda random: send("StrangersSlow", bytes(4000)), 120, 600, slowly=True),
        "byte a second, name server": Attack("namesrv", lambda random: slow, 40, 600, slowly=True),
        "never reads 3 MiB": Attack("broker", lambda random: view(large) * 300, 20, 30, reads=False),
        "never reads pulls": Attack("broker", lambda random: pull(HONEST_TOPIC) * 300, 60, 30, 10, reads=False),
        "never reads lists": Attack("broker", lambda random: frame(21) * 200, 20, 30, 10, reads=False),
        "never reads topics": Attack("namesrv", all_topics, 10, 30, 30, reads=False),
        "all topics": Attack("namesrv", all_topics, 1, 10, 30),
        "200,000 topics": Attack(
            "namesrv", lambda random: register("stranger-full", "127.0.0.1:8", 200_000), 1, 600, 60
        ),
        "forged brokers": Attack("namesrv", forged_brokers, 10),
        "key values": Attack("namesrv", key_values, 2, 5, 10),
        "inflated": Attack("namesrv", inflated, 2, 5, 20),
        "damaged": Attack("broker", damaged, 30, 1, 5),
        "damaged, fast port": Attack("fast", damaged, 10, 1, 5),
        "damaged, name server": Attack("namesrv", damaged, 10, 1, 5),
        "JSON bombs": Attack("broker", json_bomb, 5, 1, 5),
        "JSON bombs, name server": Attack("namesrv", json_bomb, 5, 1, 5),
        "many groups": Attack("broker", many_groups, 2, 3, 5),
        "many dashes": Attack("broker", many_dashes, 5),
        "invented queues": Attack("broker", invented_queues, 5),
        "unused tag": Attack("broker", unused_tag, 3),
        "held pulls": Attack("broker", held, 50, 40, 5),
        "held pops": Attack("broker", held_pops, 20, 40, 5),
        "new topics": Attack("broker", new_topics, 3),
        "huge topics": Attack("broker", huge_topics, 1, 5, 20),
        "forged messages": Attack("broker", forged, 10),
        "large messages": Attack("broker", large_messages, 2, 2, 2),
        "no zlib": Attack("broker", no_zlib, 2),
        "long properties": Attack("broker", long_properties, 2, 5, 10),
        "forged receipts": Attack("broker", forged_receipts, 10),
        "other brokers": Attack("broker", other_brokers, 10),
        "forged slaves": Attack("ha", forged_slave, 10, 0.5, 10),
        "generated": Attack("broker", generated("broker"), 10, 3, 10),
        "generated, fast port": Attack("fast", generated("broker"), 5, 3, 10),
        "generated, name server": Attack("namesrv", generated("namesrv"), 5, 3, 10),
    }
