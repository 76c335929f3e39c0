"""Hostile values in every request that names a place: nothing of others is read, copied or ended by them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.storage.conftest import no_sync
from tests.support.broker import BrokerInMemory, Peer
from tests.support.forged_records import forged_body
from tests.support.heartbeat import heartbeat
from tests.support.named_places import NAMED_PLACES, Known
from tests.support.transactions import half_fields
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.wire.header_fields import wire_fields
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.message_store import FileMessageStore

A_PLACE = re.compile(r"(?<!clean)[oO]ffset$|^msgId$|^extraInfo$|Handle$|^index$|^timestamp$")
OWNER, STRANGER, CONSUMER = 40001, 40002, 40003
OTHER_HOST = "127.0.0.9"


@attrs.define
class World:
    """A broker with a message of Secret and of SecAa, a half message of an owner's, and forged records of a stranger's."""

    broker: BrokerInMemory
    owner: Peer
    stranger: Peer
    consumer: Peer
    known: Known
    half: dict[str, str]

    def bodies(self) -> list[bytes]:
        """The bodies of all messages that consumers could read."""
        store = self.broker.store
        return [
            decode_message(record).body
            for topic in store.topics()
            for queue_id in store.queue_ids(topic)
            for record in store.get_message(topic, queue_id, 0, 99, 1 << 20, None).records
        ]


def send(peer: Peer, topic: str, body: bytes, key: str = "K") -> dict[str, str]:
    fields = {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "j": "0",
              "k": "false", "m": "false", "i": f"KEYS\x01{key}\x02"}  # fmt: skip
    answer = peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body)
    assert answer.code == 0
    return answer.ext_fields


@pytest.fixture
def world(tmp_path: Path) -> Any:
    config = StoreConfig(
        store_path_root_dir=str(tmp_path),
        store_host=pack_host("127.0.0.2", 20911),
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=2000,
        max_hash_slot_num=50,
        max_index_num=200,
    )
    store = FileMessageStore(config, lambda: 1_795_217_217_000, sync=no_sync)
    broker = BrokerInMemory(
        store=store, use_server_side_reset_offset=True, timer_max_delay_sec=1000, recall_message_enable=True
    )
    owner, consumer, stranger = broker.connect(OWNER), broker.connect(CONSUMER), broker.connect(STRANGER, OTHER_HOST)
    heartbeat(consumer, "G", "T", client_id="one")
    half = owner.ask(RequestCode.SEND_MESSAGE_V2, half_fields("K", broker.now_ms()), b"half").ext_fields
    send(owner, "Secret", b"secret")
    send(owner, "SecAa", b"secret too")
    offsets = []
    for claimed, queue_offset in ((HALF_TOPIC, 0), (HALF_TOPIC, 1), (CHECK_MAX_TIME_TOPIC, 0), ("T", 0), ("T", 3)):
        properties = {"PGROUP": "PG", "REAL_TOPIC": "Secret", "REAL_QID": "0", "UNIQ_KEY": "K"}
        place, body = forged_body(
            store.max_physical_offset(),
            claimed,
            queue_offset=queue_offset,
            properties=properties,
            born_host=pack_host(OTHER_HOST, STRANGER),
        )
        send(stranger, "T", body)
        offsets.append(place)
    half_offset = int(half["msgId"][16:], 16)
    known = [
        Known(place, half_offset + 8, store.max_physical_offset(), half_offset, broker.now_ms()) for place in offsets
    ]
    yield [World(broker, owner, stranger, consumer, one, half) for one in known]
    store.close()


@pytest.mark.parametrize("code", NAMED_PLACES, ids=lambda code: code.name)
def test_named_place(world: list[World], code: RequestCode) -> None:
    """Nothing is read, copied or handed on; the owner's transaction ends as its owner says."""
    named, before = NAMED_PLACES[code], sorted(world[0].bodies())
    broker, stranger, consumer = world[0].broker, world[0].stranger, world[0].consumer
    sent = 0
    for one in world:
        for fields, body in named.hostile(one.known):
            stranger.ask_later(code, fields, body)
            broker.clock.pump([0.0] * 5)
            (answer,) = stranger.received()
            assert answer.code in named.answers, (fields, answer.code, answer.remark)
            assert b"secret" not in answer.body and b"forged" not in answer.body
            sent += 1
    assert sent > 0
    assert consumer.received() == []
    assert sorted(world[0].bodies()) == before
    end = {"producerGroup": "PG", "commitLogOffset": str(world[0].known.half), "tranStateTableOffset": "0",
           "fromTransactionCheck": "false", "msgId": "K", "commitOrRollback": "8"}  # fmt: skip
    assert world[0].owner.ask(RequestCode.END_TRANSACTION, end).code == 0
    committed = broker.store.get_message("T", 2, 0, 9, 1 << 20, None).records
    assert [decode_message(record).body for record in committed] == [b"half"]


def test_every_request_that_names_a_place_is_in_the_table() -> None:
    served = BrokerInMemory().processors
    naming = {
        code
        for code, spec in REQUESTS.items()
        if int(code) in served and spec.request_header is not None
        for field in wire_fields(spec.request_header)
        if A_PLACE.search(field.wire)
    }
    assert naming <= set(NAMED_PLACES)


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (RequestCode.VIEW_MESSAGE_BY_ID, {"topic": "T"}),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "G", "delayLevel": "-1"}),
    ],
)
def test_a_message_of_a_deleted_topic_is_found_later(
    world: list[World], code: RequestCode, fields: dict[str, str]
) -> None:
    broker, stranger = world[0].broker, world[0].stranger
    offset = int(send(world[0].owner, "Gone", b"body of gone")["msgId"][16:], 16)
    broker.store.delete_topics({"Gone"})
    stranger.ask_later(code, fields | {"offset": str(offset)})
    assert stranger.received() == []
    broker.clock.pump([0.0] * 5)
    (answer,) = stranger.received()
    assert answer.code == 0
    found = answer.body or broker.store.get_message("%DLQ%G", 0, 0, 1, 9999, None).records[0]
    assert decode_message(found).body == b"body of gone"


def test_a_registered_producer_ends_its_groups_transactions(world: list[World]) -> None:
    """Its host is another than that of the half message's sender; without a heartbeat it may not."""
    broker, half = world[0].broker, world[0].known.half
    other = broker.connect(40004, OTHER_HOST)
    end = {"producerGroup": "PG", "commitLogOffset": str(half), "tranStateTableOffset": "0",
           "fromTransactionCheck": "false", "msgId": "K", "commitOrRollback": "12"}  # fmt: skip
    refused = other.ask(RequestCode.END_TRANSACTION, end)
    assert (refused.code, refused.remark) == (
        ResponseCode.NO_PERMISSION,
        "producerGroup PG: /127.0.0.9:40004 is not on the sender's host, nor a registered producer",
    )
    heartbeat(other, "", client_id="other", producer="PG")
    assert other.ask(RequestCode.END_TRANSACTION, end).code == 0


def test_other_connections_of_the_senders_host_end_its_transactions(world: list[World]) -> None:
    """A proxy sends over one connection of its pool and ends over another, before any is registered."""
    end = {"producerGroup": "PG", "commitLogOffset": str(world[0].known.half), "tranStateTableOffset": "0",
           "fromTransactionCheck": "false", "msgId": "K", "commitOrRollback": "8"}  # fmt: skip
    assert world[0].broker.connect(40004).ask(RequestCode.END_TRANSACTION, end).code == 0


def test_strangers_end_transactions_where_that_is_asked_for(tmp_path: Path) -> None:
    broker = BrokerInMemory(transaction_members_only=False)
    broker.connect(OWNER).ask(RequestCode.SEND_MESSAGE_V2, half_fields("K", broker.now_ms()), b"half")
    end = {"producerGroup": "PG", "commitLogOffset": "0", "tranStateTableOffset": "0", "fromTransactionCheck": "false",
           "msgId": "K", "commitOrRollback": "8"}  # fmt: skip
    assert broker.connect(STRANGER, OTHER_HOST).ask(RequestCode.END_TRANSACTION, end).code == 0
