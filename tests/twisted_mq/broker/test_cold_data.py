"""Thresholds for reads of what has left the memory: set, shown, kept to."""

from __future__ import annotations

import json
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory
from twisted_mq.broker.clients.client_names import MOST_GROUP_NAME
from twisted_mq.broker.cold_reads import BUSY, REMEMBERED_MS, ColdReads
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processors.admin_absent_parts import CHECK_ERROR, NO_ROCKSDB
from twisted_mq.broker.processors.admin_cold_data import READ_AHEAD_MODE
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import PullMessageRequestHeader, SendMessageRequestHeader
from twisted_mq.protocol.wire.header_codec import encode_header

UPDATE, REMOVE, INFO = (
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
    RequestCode.GET_COLD_DATA_FLOW_CTR_INFO,
)


class ThresholdTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.peer = BrokerInMemory().connect()

    def info(self) -> Any:
        return json.loads(self.peer.ask(INFO).body)

    def test_thresholds_are_set_shown_and_dropped(self) -> None:
        self.assertEqual(self.peer.ask(UPDATE, body=b"G=1000\nH=5\n").code, 0)
        self.assertEqual(
            self.info(),
            {
                "runtimeTable": {},
                "configTable": {"G": 1000, "H": 5},
                "cgColdReadThreshold": 3145728,
                "globalColdReadThreshold": 104857600,
                "globalAcc": 0,
            },
        )
        for group in (b"G", b"unknown"):
            self.assertEqual(self.peer.ask(REMOVE, body=group).code, 0)
        self.assertEqual(self.info()["configTable"], {"H": 5})

    def test_what_is_no_number_changes_nothing(self) -> None:
        answer = self.peer.ask(UPDATE, body=b"G=1000\nH=many\n")
        self.assertEqual((answer.code, self.info()["configTable"]), (ResponseCode.INVALID_PARAMETER, {}))

    def test_a_name_that_no_group_may_have_changes_nothing(self) -> None:
        answer = self.peer.ask(UPDATE, body=b"G=1000\n%b=5\n" % (b"H" * (MOST_GROUP_NAME + 1)))
        self.assertEqual((answer.code, self.info()["configTable"]), (ResponseCode.INVALID_PARAMETER, {}))
        self.assertIn("256 characters, the limit is 255", answer.remark or "")


class ColdReadsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.now = 1_000
        self.reads = ColdReads(
            BrokerOptions(cg_cold_read_threshold=10, global_cold_read_threshold=100), lambda: self.now
        )

    def refused(self, group: str, *, pushed: bool = True) -> str | None:
        try:
            self.reads.take(group, 10, pushed=pushed)
        except BrokerError as error:
            return error.remark
        return None

    def test_a_group_past_its_threshold_waits_for_the_next_period(self) -> None:
        self.assertEqual([self.refused("G"), self.refused("G"), self.refused("H")], [None, BUSY, None])
        self.reads.begin_period()
        self.assertEqual(self.refused("G"), None)

    def test_a_threshold_of_its_own_counts_for_a_group(self) -> None:
        self.reads.set_threshold("G", 30)
        self.assertEqual([self.refused("G") for _ in range(4)], [None, None, None, BUSY])

    def test_who_pulls_by_himself_is_counted_only(self) -> None:
        self.assertEqual([self.refused("G", pushed=False) for _ in range(3)], [None] * 3)
        self.assertEqual(self.reads.size_bytes, 30)

    def test_all_groups_together_wait_too(self) -> None:
        for number in range(10):
            self.refused(f"G{number}", pushed=False)
        self.reads.set_threshold("G0", 1_000)
        self.assertEqual(self.refused("G0"), BUSY)

    def test_a_group_that_reads_nothing_cold_is_forgotten(self) -> None:
        self.refused("G")
        self.now += REMEMBERED_MS
        self.reads.begin_period()
        self.assertEqual(self.reads.figures()["runtimeTable"], {})

    def test_figures_name_bytes_and_times(self) -> None:
        self.refused("G")
        figures = {"coldAcc": 10, "createTimeMills": 1_000, "lastColdReadTimeMills": 1_000}
        self.assertEqual(self.reads.figures()["runtimeTable"], {"G": figures})


class ColdPullTests(SynchronousTestCase):
    def test_a_pull_of_cold_data_is_refused_past_the_threshold(self) -> None:
        broker = BrokerInMemory(cold_data_flow_control_enable=True, cg_cold_read_threshold=1)
        peer = broker.connect()
        broker.store.configure(attrs.evolve(broker.store.config, physical_memory=0))
        send = SendMessageRequestHeader(
            producer_group="P", topic="T", default_topic="TBW102", default_topic_queue_nums=1, queue_id=0, sys_flag=0,
            born_timestamp=1, flag=0, properties=None, reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        for _ in range(2):
            self.assertEqual(peer.ask(RequestCode.SEND_MESSAGE, encode_header(send), b"x").code, 0)
        pull = PullMessageRequestHeader(
            consumer_group="G", topic="T", queue_id=0, queue_offset=0, max_msg_nums=1, sys_flag=4,
            commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
        )  # fmt: skip
        answers = [peer.ask(RequestCode.PULL_MESSAGE, encode_header(pull)) for _ in range(2)]
        self.assertEqual([answer.code for answer in answers], [0, ResponseCode.SYSTEM_BUSY])
        self.assertEqual(answers[1].remark, BUSY)
        broker.controller.cold_reads.begin_period()
        self.assertEqual(peer.ask(RequestCode.PULL_MESSAGE, encode_header(pull)).code, 0)


class ReadModeTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.broker = BrokerInMemory()
        self.peer = self.broker.connect()

    def ask(self, fields: dict[str, str]) -> tuple[int, str | None]:
        answer = self.peer.ask(RequestCode.SET_COMMITLOG_READ_MODE, fields)
        return answer.code, answer.remark

    def test_the_store_is_told_how_its_log_is_read(self) -> None:
        for mode, ahead in (("1", False), ("0", True)):
            told = self.ask({READ_AHEAD_MODE: mode})
            self.assertEqual(told, (0, f"set commitlog readahead mode success, mode: {mode}"))
            self.assertEqual(self.broker.store.config.data_read_ahead_enable, ahead)

    def test_other_modes_are_refused_in_apaches_words(self) -> None:
        error = "set commitlog readahead mode "
        self.assertEqual(self.ask({}), (ResponseCode.SYSTEM_ERROR, error + "param error"))
        self.assertEqual(self.ask({"mode": "1"}), (ResponseCode.SYSTEM_ERROR, error + "failed"))
        self.assertEqual(self.ask({READ_AHEAD_MODE: "one"}), (ResponseCode.SYSTEM_ERROR, error + "failed"))
        told = self.ask({READ_AHEAD_MODE: "2"})
        self.assertEqual(told, (ResponseCode.INVALID_PARAMETER, error + "param value error"))
        self.assertTrue(self.broker.store.config.data_read_ahead_enable)


class AbsentPartsTests(SynchronousTestCase):
    def test_what_does_not_exist_here_is_answered_as_by_a_broker_that_does_not_use_it(self) -> None:
        peer = BrokerInMemory().connect()
        queues = peer.ask(RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, {"topic": "T"})
        self.assertEqual(json.loads(queues.body), {"checkResult": NO_ROCKSDB, "checkStatus": CHECK_ERROR})
        exported = peer.ask(RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON, {"configType": "topics"})
        self.assertEqual((exported.code, exported.remark), (0, "export done."))
        self.assertEqual(peer.ask(RequestCode.RESET_MASTER_FLUSH_OFFSET, {"masterFlushOffset": "5"}).code, 0)
        self.assertEqual(peer.ask(RequestCode.POP_ROLLBACK).code, 0)
        told = {"minBrokerId": "1", "brokerName": "b", "minBrokerAddr": "h:1"}
        self.assertEqual(peer.ask(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, told).code, 0)
