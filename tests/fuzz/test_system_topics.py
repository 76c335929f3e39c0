"""Forged records in the topics that a broker keeps for itself: it passes them over, and serves what waits beside them."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.fuzz import values
from tests.fuzz.cases import cases, dice
from tests.support.pop import REVIVE_TOPIC, PopDesk, bodies, messages
from twisted_mq.protocol.bodies.pop import ACK_TAG, BATCH_ACK_TAG, CHECK_POINT_TAG
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC, TIMER_TOPIC
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.storage.interfaces import InnerMessage

TAGS = (CHECK_POINT_TAG, ACK_TAG, BATCH_ACK_TAG, "", "other")
WAITING = ("TIMER_OUT_MS", "REAL_TOPIC", "REAL_QID", "DELAY", "TIMER_DEL_UNIQKEY", "TIMER_ROLL_TIMES", "UNIQ_KEY")
TRIES = 10


def forged(random: Random, topic: str, now: int) -> InnerMessage:
    """A record as the topic has them, with values that no broker writes."""
    properties = {name: values.plain(random) for name in WAITING if random.random() < 0.6}
    if random.random() < 0.7:
        properties |= {"TIMER_OUT_MS": str(now + random.randrange(-5000, 9000)), "REAL_QID": "0"}
        properties["REAL_TOPIC"] = random.choice(("T", TIMER_TOPIC, SCHEDULE_TOPIC, REVIVE_TOPIC, *values.TOPICS))
    body = values.revive_body(random) if random.random() < 0.8 else random.randbytes(40)
    properties["TAGS"] = tag = random.choice(TAGS)
    text = encode_properties(properties).encode("utf-8", "replace")
    host = pack_host("127.0.0.1", 1)
    return InnerMessage(topic, 0, body, text, properties, tags_code(tag), born_timestamp=now, born_host=host)


def test_records_that_no_broker_wrote_keep_no_honest_message_from_coming(tmp_path: Path) -> None:
    for case in cases(0.001, least=20):
        with dice(case) as random:
            root = tmp_path / str(case)
            root.mkdir()
            desk = PopDesk(root)
            desk.send("popped")
            assert bodies(desk.pop(queueId=0)) == ["popped"]
            for _ in range(random.randrange(1, TRIES)):
                topic = random.choice((REVIVE_TOPIC, REVIVE_TOPIC, TIMER_TOPIC, SCHEDULE_TOPIC))
                desk.broker.store.put_message(forged(random, topic, desk.now))
            desk.controller.dispatch()
            desk.send("timed", queue=1, TIMER_DELAY_SEC="3")
            desk.send("delayed", queue=2, DELAY="1")
            desk.pass_time(25)
            came = set()
            for _ in range(TRIES):
                came |= {message.body for message in messages(desk.pop())}
            assert came >= {b"popped", b"timed", b"delayed"}
            desk.stop()
            assert len(desk.stored(TIMER_TOPIC)) < 60
