"""Values for fields, properties and bodies: those that mean something, those at an edge, and those that forge."""

from __future__ import annotations

import json
import string
import zlib
from random import Random

import attrs

from tests.fuzz import typed
from twisted_mq.protocol.bodies import AckMsg, BatchAckMsg, DataVersion, PopCheckPoint
from twisted_mq.protocol.bodies.register_broker import RegisterBrokerBody
from twisted_mq.protocol.headers.fields import FieldKind
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.names.recall_handle import RecallHandle

NUMBERS = (0, 1, -1, 2, 3, 4, 8, 16, 127, 255, 32767, 65535, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 10**30)
TOPICS = (
    "FuzzA", "FuzzB", "%RETRY%fuzzers", "%DLQ%fuzzers", "%RETRY%fuzzers_FuzzA", "TBW102", "SELF_TEST_TOPIC", "broker-a",
    "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "rmq_sys_REVIVE_LOG_DefaultCluster", "OFFSET_MOVED_EVENT", "RMQ_SYS_TRACE_TOPIC", "DefaultCluster_REPLY_TOPIC",
    "space%FuzzA", "../../etc/passwd", "a/b", "", ".", "..", "x" * 127, "x" * 300, "\u00e9\u4e2d", "\x00", "FuzzA\x01", "%",
)  # fmt: skip
GROUPS = ("fuzzers", "others", "CID_RMQ_SYS_TRANS", "TOOLS_CONSUMER", "g" * 130, "", "%RETRY%fuzzers", "a b", "\x02")
EXPRESSIONS = (
    "*", "A", "A || B", "a > 1", "a BETWEEN 1 AND 2 AND b IS NOT NULL", "--" * 40, "'" * 31, "(" * 60, "NOT " * 60 + "a",
    "a IN (" + ",".join("'x'" for _ in range(60)) + ")", "1" * 400, "a = " + "1e" * 20, "/*" * 30, "\\", "||", "a" * 900,
)  # fmt: skip
PROPERTY_NAMES = (
    "TAGS", "KEYS", "UNIQ_KEY", "DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TIMER_OUT_MS", "TRAN_MSG",
    "PGROUP", "REAL_TOPIC", "REAL_QID", "POP_CK", "CLUSTER", "INNER_NUM", "INNER_BASE", "WAIT", "1ST_POP_TIME", "MSG_TYPE",
    "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "__SHARDINGKEY", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "MAX_RECONSUME_TIMES",
    "TRANSACTION_PREPARED_QUEUE_OFFSET", "DLQ_ORIGIN_TOPIC", "a", "b",
)  # fmt: skip
HANDLES = (
    "",
    "0 0 0 0 0 broker-a 0 0",
    "AAAA",
    "0" * 32,
    "7F00000100002A9F0000000000000000",
    "127.0.0.1:1",
    "v1 x y z",
)
RECEIPTS = ("extraInfo", "recallHandle")
_LETTERS = string.printable


def number(random: Random) -> int:
    """Small, at an edge, or anything."""
    return random.choice(
        (random.choice(NUMBERS), random.randrange(-9, 99), random.getrandbits(random.choice((8, 31, 62))))
    )


def text(random: Random) -> str:
    """A name, an expression, a handle, a number, or noise."""
    kind = random.randrange(7)
    if kind < 4:
        return random.choice((TOPICS, GROUPS, EXPRESSIONS, HANDLES)[kind])
    if kind == 4:
        return str(number(random))
    if kind == 5:
        return properties(random)
    return "".join(random.choices(_LETTERS, k=random.randrange(40)))


def properties(random: Random) -> str:
    """Properties in their text form, some with a separator too few."""
    pairs = [(random.choice(PROPERTY_NAMES), plain(random)) for _ in range(random.randrange(6))]
    joined = "".join(f"{name}\x01{value}\x02" for name, value in pairs)
    return joined if random.random() < 0.9 else joined[:-1] + random.choice(("\x01", "\x02\x02", "x"))


def plain(random: Random) -> str:
    """A value that a property may have."""
    return random.choice((random.choice(TOPICS), random.choice(HANDLES), str(number(random)), "true", "A", ""))


def field(random: Random, wire: str, kind: FieldKind) -> str:
    """A header's field: by its name where that says what it is, else by its type."""
    if random.random() < 0.05:
        return text(random)
    lower = wire.lower()
    if "topic" in lower or wire == "b":
        return random.choice(TOPICS)
    if "group" in lower or wire == "a":
        return random.choice(GROUPS)
    if wire in RECEIPTS:
        return random.choice((receipt, recall_handle))(random)
    if wire in ("properties", "i"):
        return properties(random)
    if wire == "subscription":
        return random.choice(EXPRESSIONS)
    if kind is FieldKind.BOOLEAN:
        return random.choice(("true", "false", "maybe"))
    return text(random) if kind in (FieldKind.TEXT, FieldKind.BOUNDARY) else str(number(random))


def body(random: Random, body_class: object, fields: dict[str, str]) -> bytes:
    """A body: JSON of its class, deflated where it may be, a batch, what the revive log holds, a compressed one, or noise."""
    kind = random.randrange(8)
    if kind < 5 and isinstance(body_class, type) and attrs.has(body_class):
        return typed_body(random, body_class, fields)
    if kind == 5:
        return batch(random)
    if kind == 6:
        return zlib.compress(bytes(random.choice((10, 1000, 1 << 20))))
    if kind == 7:
        return revive_body(random)
    return random.choice((b"", random.randbytes(random.randrange(200)), json.dumps(anything(random, 3)).encode()))


def typed_body(random: Random, body_class: type, fields: dict[str, str]) -> bytes:
    """JSON of a class; a registration is sometimes deflated, and mostly has the checksum that its header tells."""
    data = json.dumps(typed.json_of(random, body_class)).encode()
    if body_class is RegisterBrokerBody:
        if random.random() < 0.5:
            data, fields["compressed"] = registration(random), "true"
        if random.random() < 0.9:
            fields["bodyCrc32"] = str(zlib.crc32(data) & 0x7FFFFFFF)
    return data


def registration(random: Random) -> bytes:
    """Topics as brokers deflate them; some lengths and counts lie."""
    lines = [
        f"{random.choice(TOPICS)} {number(random)} 4 6 SINGLE_TAG {{}}".encode() for _ in range(random.randrange(9))
    ]
    version = json.dumps(typed.json_of(random, DataVersion)).encode()
    count = len(lines) if random.random() < 0.9 else random.getrandbits(31)
    parts = [sized(random, version), count.to_bytes(4, "big"), *(sized(random, line) for line in lines)]
    data = b"".join((*parts, sized(random, b"[]"), bytes(4)))
    return zlib.compress(data) if random.random() < 0.9 else data


def sized(random: Random, data: bytes) -> bytes:
    length = len(data) if random.random() < 0.99 else random.getrandbits(32)
    return length.to_bytes(4, "big") + data


def revive_body(random: Random) -> bytes:
    """A check point or an acknowledgement."""
    return json.dumps(typed.json_of(random, random.choice((PopCheckPoint, AckMsg, BatchAckMsg)))).encode()


def receipt(random: Random) -> str:
    """Return the receipt of a popped message."""
    numbers = [number(random) for _ in range(6)]
    return (
        f"{numbers[0]} {numbers[1]} {numbers[2]} {numbers[3] % 3} {random.randrange(3)} fuzz {numbers[4]} {numbers[5]}"
    )


def recall_handle(random: Random) -> str:
    return RecallHandle(random.choice(TOPICS), "fuzz", str(number(random)), random.choice(HANDLES)).encode()


def anything(random: Random, depth: int) -> object:
    """A JSON value."""
    kind = random.randrange(7 if depth else 4)
    if kind < 4:
        return (None, number(random), text(random), random.random() < 0.5)[kind]
    values = [anything(random, depth - 1) for _ in range(random.randrange(4))]
    return values if kind == 4 else {text(random): value for value in values}


def batch(random: Random) -> bytes:
    """Messages as a producer joins them, sometimes cut short."""
    encoded = encode_batch(
        [Message("FuzzA", random.randbytes(random.randrange(50))) for _ in range(random.randrange(1, 5))]
    )
    return encoded if random.random() < 0.7 else encoded[: random.randrange(len(encoded))]
