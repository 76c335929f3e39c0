"""A broker whose role is SLAVE, and sends of a SYNC_MASTER: what clients are answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.support.captures import frame_index, frames
from tests.support.remoting import MemoryNetwork
from twisted_mq.broker.ha.client import HAClient
from twisted_mq.protocol.bodies import DelayOffsetSerializeWrapper, HARuntimeInfo, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.remarks import REJECTED
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.memory.memory_store import MemoryMessageStore

SLAVE = {"broker_role": "SLAVE", "broker_id": 1}


def send_fields(**more: str) -> dict[str, str]:
    fields = {"a": "G", "b": "TBW102", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": "0"}
    return fields | {"i": "UNIQ_KEY\x01C000020207304E0E2F2A66F6EFA80000\x02"} | more


def pull_fields(offset: int = 0, **more: str) -> dict[str, str]:
    fields = {
        "consumerGroup": "G",
        "topic": "BenchmarkTest",
        "queueId": "0",
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": "6",
        "commitOffset": "0",
        "suspendTimeoutMillis": "15000",
        "subVersion": "0",
        "subscription": "*",
        "expressionType": "TAG",
    }
    return fields | more


def replicated(broker: BrokerInMemory, count: int) -> None:
    """Let a master have sent messages."""
    source = MemoryMessageStore(broker.store.config, broker.now_ms)
    source.start()
    for number in range(count):
        source.put_message(InnerMessage("BenchmarkTest", 0, b"%d" % number, b"", {}, 0))
    offset = 0
    while data := source.read_log(offset, 1 << 20):
        broker.store.append_log(offset, bytes(data))
        offset += len(data)
    broker.controller.dispatch()


@pytest.mark.parametrize("code", [10, 310, 320, 36])
def test_slave_refuses_sends_as_apaches_does(code: int) -> None:
    answer = BrokerInMemory(**SLAVE).connect().ask(code, send_fields(), b"body")
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_BUSY, REJECTED)


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_slave_serves_pulls_only_where_it_may(code: int) -> None:
    broker = BrokerInMemory(**SLAVE)
    replicated(broker, 3)
    peer = broker.connect()
    assert peer.ask(code, pull_fields()).code == ResponseCode.SYSTEM_BUSY
    broker.options.slave_read_enable = True
    answer = peer.ask(code, pull_fields())
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (0, "3")


@pytest.mark.parametrize("acts", [False, True])
def test_slave_whose_log_differs_from_its_masters_serves_no_pulls_unless_it_acts(acts: bool) -> None:
    """The master gives the same offsets to other messages: readers would skip those."""
    broker = BrokerInMemory(slave_read_enable=True, **SLAVE)
    replicated(broker, 3)
    broker.controller.ha.follow(SimpleNamespace(differs=True))  # type: ignore[arg-type]
    broker.controller.acts_as_master = acts
    answer = broker.connect().ask(RequestCode.PULL_MESSAGE, pull_fields())
    assert answer.code == (0 if acts else ResponseCode.SYSTEM_BUSY)


def test_refusal_of_a_pull_is_apaches_byte_for_byte_but_the_language() -> None:
    recorded = next(one for one in frame_index("read_from_slave_master_down") if one["comment"].endswith(REJECTED))
    start, end = recorded["offset"], recorded["offset"] + recorded["length"]
    data = frames("read_from_slave_master_down")[start:end]
    answer = BrokerInMemory(**SLAVE).connect().ask(RequestCode.PULL_MESSAGE, pull_fields())
    assert REJECTED.encode() in data
    assert (answer.code, answer.remark, answer.ext_fields or {}) == (recorded["code"], REJECTED, {})


def reading_slave(master_is_there: bool) -> tuple[BrokerInMemory, Peer]:
    broker = BrokerInMemory(slave_read_enable=True, **SLAVE)
    replicated(broker, 3)
    broker.controller.min_broker_id = 0 if master_is_there else 1
    return broker, broker.connect()


def test_slave_sends_readers_back_to_a_living_master() -> None:
    """The slave delivers its messages, and does not let a reader wait if it has none."""
    _, peer = reading_slave(master_is_there=True)
    found = peer.ask(RequestCode.PULL_MESSAGE, pull_fields(0))
    assert (found.code, found.ext_fields["suggestWhichBrokerId"]) == (ResponseCode.SUCCESS, "0")
    at_end = peer.ask(RequestCode.PULL_MESSAGE, pull_fields(3))
    assert (at_end.code, at_end.remark) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "OFFSET_OVERFLOW_ONE")


def test_slave_without_master_lets_readers_wait_for_what_is_replicated() -> None:
    broker, peer = reading_slave(master_is_there=False)
    peer.send(RemotingCommand(RequestCode.PULL_MESSAGE, ext_fields=pull_fields(3)))
    assert peer.received() == []
    broker.clock.advance(16)
    broker.controller.polling.answer_expired(broker.now_ms())
    (answer,) = peer.received()
    assert answer.code == ResponseCode.PULL_NOT_FOUND


def test_master_suggests_the_slave_for_what_has_left_its_memory() -> None:
    broker = BrokerInMemory(slave_read_enable=True)
    peer = broker.connect()
    peer.ask(310, send_fields(b="BenchmarkTest"), b"x")
    get = broker.store.get_message

    def old(*arguments: Any) -> Any:
        result = get(*arguments)
        result.suggest_pulling_from_slave = True
        return result

    for expected in ("0", "1"):
        answer = peer.ask(RequestCode.PULL_MESSAGE, pull_fields())
        assert answer.ext_fields["suggestWhichBrokerId"] == expected
        broker.controller.timed_get.call = old


# sends that wait


def sync_master(**options: Any) -> tuple[BrokerInMemory, Peer]:
    broker = BrokerInMemory(broker_role="SYNC_MASTER", **options)
    return broker, broker.connect()


def test_one_copy_waits_for_nobody() -> None:
    _, peer = sync_master()
    assert peer.ask(310, send_fields(), b"x").code == ResponseCode.SUCCESS


def test_two_copies_without_a_slave_time_out_with_the_messages_place() -> None:
    broker, peer = sync_master(in_sync_replicas=2)
    peer.send(RemotingCommand(310, body=b"x", ext_fields=send_fields()))
    assert peer.received() == []
    broker.clock.advance(3)
    (answer,) = peer.received()
    assert (answer.code, answer.ext_fields["queueOffset"]) == (ResponseCode.FLUSH_SLAVE_TIMEOUT, "0")


def test_acknowledged_send_is_answered() -> None:
    broker, peer = sync_master(in_sync_replicas=2)
    peer.send(RemotingCommand(310, body=b"x", ext_fields=send_fields()))
    broker.controller.ha.transfers.acknowledged([broker.store.max_physical_offset()])
    (answer,) = peer.received()
    assert answer.code == ResponseCode.SUCCESS


def test_message_that_need_not_wait_does_not() -> None:
    _, peer = sync_master(in_sync_replicas=2)
    answer = peer.ask(310, send_fields(i="WAIT\x01false\x02"), b"x")
    assert answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("flushed", "acknowledged", "code"),
    [
        (True, True, ResponseCode.SUCCESS),
        (True, False, ResponseCode.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_disk_and_slaves_both_count(flushed: bool, acknowledged: bool, code: int) -> None:
    broker, peer = sync_master(in_sync_replicas=2, flush_disk_type="SYNC_FLUSH", hold_flushes=True)
    peer.send(RemotingCommand(310, body=b"x", ext_fields=send_fields()))
    if acknowledged:
        broker.controller.ha.transfers.acknowledged([broker.store.max_physical_offset()])
    assert peer.received() == []
    if flushed:
        broker.store.flush()
    broker.clock.advance(3)
    (answer,) = peer.received()
    assert answer.code == code


# what slaves and operators ask


def test_master_hands_out_delay_offsets() -> None:
    broker = BrokerInMemory()
    broker.controller.waiting.schedule.offsets[3] = 7
    answer = broker.connect().ask(RequestCode.GET_ALL_DELAY_OFFSET)
    assert decode_body(DelayOffsetSerializeWrapper, answer.body).offset_table[3] == 7


def test_request_modes_without_any_are_those_of_the_recording() -> None:
    answer = BrokerInMemory().connect().ask(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
    assert answer.body == b'{"messageRequestModeMap":{}}'


def test_timers_progress_is_had_only_from_a_master_with_a_timer() -> None:
    assert len(BrokerInMemory(timer_wheel_enable=True).connect().ask(RequestCode.GET_TIMER_CHECK_POINT).body) == 56
    for options in ({"timer_wheel_enable": False}, SLAVE):
        peer = BrokerInMemory(**options).connect()
        assert peer.ask(RequestCode.GET_TIMER_CHECK_POINT).code == ResponseCode.SYSTEM_ERROR
        assert peer.ask(RequestCode.GET_TIMER_METRICS).remark == "The timer message store is null"


def test_ha_info_names_the_masters_addresses() -> None:
    broker = BrokerInMemory(parts={"ha_address": "127.0.0.2:20912"})
    answer = broker.connect().ask(RequestCode.EXCHANGE_BROKER_HA_INFO)
    assert answer.ext_fields == {
        "masterHaAddress": "127.0.0.2:20912",
        "masterFlushOffset": "0",
        "masterAddress": "127.0.0.2:20911",
    }
    assert BrokerInMemory(**SLAVE).connect().ask(RequestCode.EXCHANGE_BROKER_HA_INFO).ext_fields in (None, {})


def test_no_request_leads_a_slave_to_another_master() -> None:
    """Any client may send it; only the name servers name the master."""
    broker = BrokerInMemory(**SLAVE)
    network = MemoryNetwork(broker.clock)
    client = HAClient(
        broker.options, broker.store, broker.clock, network.connect, lambda call, *args: call(*args), bool
    )
    broker.controller.ha.follow(client)
    client.update_master_ha_address("127.0.0.2:10912")
    answer = broker.connect().ask(
        RequestCode.EXCHANGE_BROKER_HA_INFO, {"masterHaAddress": "10.9.9.9:10912", "masterAddress": "10.9.9.9:10911"}
    )
    assert (answer.code, client.master_ha_address) == (ResponseCode.SUCCESS, "127.0.0.2:10912")


def test_status_of_a_master_without_slaves() -> None:
    answer = BrokerInMemory().connect().ask(RequestCode.GET_BROKER_HA_STATUS)
    assert decode_body(HARuntimeInfo, answer.body) == HARuntimeInfo(master=True)
