"""Transactions as producers see them: requests in, answers and checks out, on a virtual clock."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet import defer

from tests.support.broker import BrokerInMemory, Peer
from tests.support.transactions import half_fields
from twisted_mq.broker.transaction.transaction_service import TransactionService
from twisted_mq.protocol.bodies import HeartbeatData, ProducerData, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_TOPIC, TRANSACTION_GROUP
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus

UNKNOWN, COMMIT, ROLLBACK = 0, 8, 12


class Desk:
    """A broker, a producer of group PG on it, and what tests do with both. Keyword arguments are broker options."""

    def __init__(self, **options: Any) -> None:
        self.broker = BrokerInMemory(**options)
        self.controller = self.broker.controller
        self.peer = self.join("client-1")

    def join(self, client_id: str, group: str = "PG") -> Peer:
        peer = self.broker.connect()
        body = encode_body(HeartbeatData(client_id=client_id, producer_data_set=[ProducerData(group_name=group)]))
        peer.ask(RequestCode.HEART_BEAT, body=body)
        return peer

    def prepare(self, key: str = "K1", more: str = "", queue_id: int = 2) -> RemotingCommand:
        fields = half_fields(key, self.broker.now_ms(), more, queue_id)
        return self.peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"body " + key.encode())

    def end(self, sent: RemotingCommand, decision: int, **changed: str) -> RemotingCommand:
        offset = int(sent.ext_fields["msgId"][16:], 16)
        fields = {
            "producerGroup": "PG", "commitLogOffset": str(offset), "tranStateTableOffset": sent.ext_fields["queueOffset"],
            "commitOrRollback": str(decision), "fromTransactionCheck": "false", "msgId": sent.ext_fields["transactionId"],
        }  # fmt: skip
        return self.peer.ask(RequestCode.END_TRANSACTION, fields | changed)

    def answer_check(self, check: RemotingCommand, decision: int) -> RemotingCommand:
        names = ("commitLogOffset", "tranStateTableOffset", "msgId", "transactionId")
        fields = {name: check.ext_fields[name] for name in names}
        more = {"producerGroup": "PG", "commitOrRollback": str(decision), "fromTransactionCheck": "true"}
        return self.peer.ask(RequestCode.END_TRANSACTION, fields | more)

    def check(self, seconds: float = 0) -> list[RemotingCommand]:
        """Let time pass and run one round of checks; what the first producer was asked."""
        self.broker.clock.advance(seconds)
        rounds = self.controller.transactions.check()
        for _ in range(100):
            self.broker.clock.advance(0)
        assert rounds.called
        return [one for one in self.peer.received() if not one.is_response]

    def stored(self, topic: str, queue_id: int = 0) -> list[Any]:
        result = self.broker.store.get_message(topic, queue_id, 0, 100, 1 << 20, None)
        return [decode_message(record) for record in result.records]

    def operations(self) -> list[bytes]:
        return [one.body for one in self.stored(OP_TOPIC)]

    def positions(self) -> tuple[int | None, int | None]:
        query = self.controller.offsets.query
        return query(TRANSACTION_GROUP, HALF_TOPIC, 0), query(TRANSACTION_GROUP, OP_TOPIC, 0)

    def restart(self) -> None:
        """Only what is on disk stays: the store and the offsets."""
        self.controller.transactions = TransactionService(self.controller)


def test_a_half_message_is_stored_aside_and_its_sender_told_its_own_queue() -> None:
    desk = Desk()
    sent = desk.prepare()
    assert (sent.code, sent.ext_fields["queueId"], sent.ext_fields["queueOffset"]) == (0, "2", "0")
    assert sent.ext_fields["transactionId"] == "K1"
    (half,) = desk.stored(HALF_TOPIC)
    assert (half.body, half.flag, half.sys_flag, half.queue_id) == (b"body K1", 7, 0, 0)
    assert half.properties == {
        "TRAN_MSG": "true", "UNIQ_KEY": "K1", "PGROUP": "PG", "TAGS": "A", "CLUSTER": "CapCluster",
        "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "__transactionId__": "K1", "REAL_TOPIC": "T", "REAL_QID": "2",
    }  # fmt: skip
    assert desk.stored("T", 2) == []
    assert desk.controller.transactions.metrics.count("T") == 1


def test_a_commit_puts_the_message_into_its_queue_and_is_never_asked_about() -> None:
    desk = Desk()
    sent = desk.prepare()
    assert desk.end(sent, COMMIT).code == ResponseCode.SUCCESS
    (message,) = desk.stored("T", 2)
    (half,) = desk.stored(HALF_TOPIC)
    assert (message.body, message.sys_flag, message.properties) == (b"body K1", COMMIT, half.properties)
    assert message.prepared_transaction_offset == half.physical_offset
    assert desk.controller.transactions.metrics.count("T") == 0
    assert desk.check(60) == []
    assert (desk.operations(), desk.positions()) == ([b"0,"], (1, 1))


def test_age_of_a_committed_transaction_is_counted_in_whole_seconds() -> None:
    desk = Desk()
    sent = desk.prepare()
    desk.broker.clock.advance(4.9955)
    desk.end(sent, COMMIT)
    counted = desk.controller.statistics.committed["T"]
    assert (counted.total, counted.counts[:2]) == (4, [1, 0])


def test_a_rollback_leaves_nothing_but_an_operation() -> None:
    desk = Desk()
    sent = desk.prepare()
    assert desk.end(sent, ROLLBACK).code == ResponseCode.SUCCESS
    assert desk.check(60) == []
    assert (desk.stored("T", 2), desk.operations(), desk.controller.transactions.metrics.count("T")) == ([], [b"0,"], 0)


def test_ends_are_counted_by_topic_and_commits_by_their_age() -> None:
    desk = Desk()
    early, late, rolled_back = desk.prepare("K1"), desk.prepare("K2"), desk.prepare("K3")
    desk.end(early, COMMIT)
    desk.end(rolled_back, ROLLBACK)
    first = desk.controller.statistics.committed["T"].total
    desk.broker.clock.advance(7)
    desk.end(late, COMMIT)
    desk.end(late, COMMIT)  # refused, it is over
    statistics = desk.controller.statistics
    assert (dict(statistics.rolled_back), set(statistics.committed)) == ({"T": 1}, {"T"})
    ages = statistics.committed["T"]
    assert (sum(ages.counts), ages.total) == (2, 2 * first + 7)
    statistics.forget_topic("T")
    assert not statistics.rolled_back and not statistics.committed


def test_an_unknown_state_is_not_answered_and_asked_about_after_the_timeout() -> None:
    desk = Desk()
    sent = desk.prepare()
    fields = {
        "producerGroup": "PG",
        "commitLogOffset": "0",
        "tranStateTableOffset": "0",
        "commitOrRollback": "0",
        "msgId": "K1",
    }
    desk.peer.send(RemotingCommand(RequestCode.END_TRANSACTION, language="JAVA", ext_fields=fields))
    assert desk.peer.received() == []
    assert desk.check(5) == []
    (check,) = desk.check(2)
    assert (check.code, check.is_one_way) == (RequestCode.CHECK_TRANSACTION_STATE, True)
    half, renewed = desk.stored(HALF_TOPIC)
    assert check.ext_fields == {
        "topic": HALF_TOPIC, "bname": "broker-cap", "msgId": "K1", "transactionId": "K1", "tranStateTableOffset": "1",
        "commitLogOffset": str(renewed.physical_offset), "offsetMsgId": renewed.msg_id,
    }  # fmt: skip
    asked = decode_message(check.body)
    assert (asked.topic, asked.queue_id, asked.queue_offset, asked.body) == ("T", 2, 1, b"body K1")
    assert asked.properties == half.properties | {"TRANSACTION_CHECK_TIMES": "1", "WAIT": "false"}
    assert renewed.properties == half.properties | {"TRANSACTION_CHECK_TIMES": "1"}
    assert (renewed.flag, sent.code) == (7, 0)


@pytest.mark.parametrize(("decision", "expected"), [(COMMIT, [b"body K1"]), (ROLLBACK, [])])
def test_the_answer_to_a_check_ends_the_transaction(decision: int, expected: list[bytes]) -> None:
    desk = Desk()
    desk.prepare()
    (check,) = desk.check(7)
    assert desk.answer_check(check, decision).code == ResponseCode.SUCCESS
    assert [one.body for one in desk.stored("T", 2)] == expected
    assert (desk.check(60), desk.operations(), desk.positions()) == ([], [b"1,"], (2, 1))


def test_every_round_asks_again_and_another_producer_of_the_group() -> None:
    """The producer that sent has disconnected; another one of its group answers."""
    desk = Desk()
    desk.prepare()
    desk.peer.channel.connectionLost()
    assert desk.check(7) == []
    desk.join("client-2", "OTHER")
    desk.peer = desk.join("client-3")
    (check,) = desk.check(30)
    assert decode_message(check.body).properties["TRANSACTION_CHECK_TIMES"] == "2"
    assert desk.answer_check(check, COMMIT).code == 0
    assert [one.body for one in desk.stored("T", 2)] == [b"body K1"]


def test_a_late_commit_and_the_answer_to_the_check_deliver_once() -> None:
    """The producer's own end comes while it is asked: both are about the same message."""
    desk = Desk()
    sent = desk.prepare()
    (check,) = desk.check(7)
    assert desk.end(sent, COMMIT).code == 0
    refused = desk.answer_check(check, COMMIT)
    assert (refused.code, refused.remark) == (604, "the transaction was committed or rolled back before")
    assert len(desk.stored("T", 2)) == 1
    assert (desk.check(60), desk.operations(), desk.positions()) == ([], [b"1,"], (2, 1))


def test_a_commit_after_a_rollback_is_refused() -> None:
    desk = Desk()
    sent = desk.prepare()
    desk.end(sent, ROLLBACK)
    assert desk.end(sent, COMMIT).code == 604
    assert desk.stored("T", 2) == []


def test_a_transaction_that_was_asked_about_too_often_is_given_up_and_can_be_resumed() -> None:
    desk = Desk(transaction_check_max=3)
    desk.prepare()
    assert [len(desk.check(30)) for _ in range(5)] == [1, 1, 1, 0, 0]
    (given_up,) = desk.stored(CHECK_MAX_TIME_TOPIC)
    assert (given_up.properties["TRANSACTION_CHECK_TIMES"], given_up.properties["REAL_TOPIC"]) == ("3", "T")
    assert (desk.positions(), desk.controller.transactions.metrics.count("T")) == ((4, 0), 0)
    answer = desk.peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": given_up.msg_id})
    assert (answer.code, desk.controller.transactions.metrics.count("T")) == (0, 1)
    (check,) = desk.check(30)
    assert decode_message(check.body).properties["TRANSACTION_CHECK_TIMES"] == "1"
    for msg_id in ("", "K1", desk.stored(HALF_TOPIC)[0].msg_id, "7F000002000051AF7FFFFFFFFFFFFFFF"):
        assert desk.peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": msg_id}).code == ResponseCode.SYSTEM_ERROR


def test_a_message_older_than_the_log_is_kept_is_given_up() -> None:
    desk = Desk(file_reserved_time=1)
    desk.prepare()
    assert (desk.check(3601), len(desk.stored(CHECK_MAX_TIME_TOPIC))) == ([], 1)


def test_immunity_puts_a_check_off_and_does_not_count_as_one() -> None:
    desk = Desk()
    desk.prepare(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x0170\x02")
    assert [len(desk.check(30)) for _ in range(3)] == [0, 0, 1]
    last = desk.stored(HALF_TOPIC)[-1].properties
    assert (last["TRAN_PREPARED_QUEUE_OFFSET"], last["TRANSACTION_CHECK_TIMES"]) == ("0", "1")


def test_a_commit_within_the_immunity_ends_a_message_that_was_moved_meanwhile() -> None:
    desk = Desk()
    sent = desk.prepare(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x01100\x02")
    desk.check(30)
    assert desk.end(sent, COMMIT).code == 0
    assert [desk.check(30) for _ in range(4)] == [[]] * 4
    assert (len(desk.stored("T", 2)), len(desk.stored(HALF_TOPIC))) == (1, 2)


def test_a_restart_between_the_move_and_the_commit_changes_nothing() -> None:
    desk = Desk()
    sent = desk.prepare(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x01100\x02")
    desk.check(30)
    desk.restart()
    assert desk.end(sent, COMMIT).code == 0
    desk.broker.clock.advance(3)
    desk.restart()
    assert [desk.check(30) for _ in range(4)] == [[]] * 4
    assert (len(desk.stored("T", 2)), len(desk.stored(HALF_TOPIC)), desk.positions()) == (1, 2, (2, 1))


def test_an_end_after_the_immunity_is_left_to_the_check() -> None:
    desk = Desk()
    sent = desk.prepare(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x0110\x02")
    desk.broker.clock.advance(11)
    assert desk.end(sent, COMMIT).code == ResponseCode.ILLEGAL_OPERATION
    (check,) = desk.check(0)
    assert desk.answer_check(check, COMMIT).code == 0


def test_messages_around_an_undecided_one_are_passed() -> None:
    desk = Desk()
    sent = [desk.prepare(f"K{number}") for number in range(5)]
    for number in (0, 2, 4):
        desk.end(sent[number], COMMIT)
    checks = desk.check(7)
    assert [check.ext_fields["msgId"] for check in checks] == ["K1", "K3"]
    assert (desk.operations(), desk.positions()) == ([b"0,2,4,"], (5, 1))


def test_a_young_message_ends_the_round() -> None:
    desk = Desk()
    first = desk.prepare("K1")
    desk.broker.clock.advance(5)
    desk.prepare("K2")
    assert [check.ext_fields["msgId"] for check in desk.check(3)] == ["K1"]
    assert (desk.positions(), first.code) == ((1, 0), 0)


def test_a_commit_whose_operation_was_lost_in_a_kill_is_not_asked_about() -> None:
    desk = Desk()
    sent = [desk.prepare("K1"), desk.prepare("K2")]
    assert desk.end(sent[0], COMMIT).code == 0
    desk.restart()
    assert desk.end(sent[0], COMMIT).code == ResponseCode.ILLEGAL_OPERATION
    assert [check.ext_fields["msgId"] for check in desk.check(60)] == ["K2"]
    desk.broker.clock.advance(3)
    assert (len(desk.stored("T", 2)), desk.operations()) == (1, [b"0,"])
    assert desk.controller.transactions.metrics.count("T") == 1
    desk.restart()
    assert desk.end(sent[0], COMMIT).code == ResponseCode.ILLEGAL_OPERATION


def test_a_commit_is_found_behind_times_that_went_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock was ahead, and is set right."""
    desk = Desk(transaction_op_batch_interval=3_600_000)
    ahead = [0]
    monkeypatch.setattr(desk.broker.store, "_now_ms", lambda: desk.broker.now_ms() + ahead[0])
    ahead[0] = 20_000
    sent = desk.prepare("K1")
    ahead[0] = 0
    assert desk.end(sent, COMMIT).code == 0
    desk.restart()
    assert (desk.check(60), len(desk.stored("T", 2)), desk.operations()) == ([], 1, [])


def test_a_message_that_was_put_again_is_asked_about_once_where_the_walk_begins_anew() -> None:
    desk = Desk()
    desk.prepare("K1")
    desk.prepare("K2")
    assert len(desk.check(7)) == 2
    desk.controller.offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, 0)  # what a power cut leaves of the positions
    desk.restart()
    checks = desk.check(60)
    assert [check.ext_fields["msgId"] for check in checks] == ["K1", "K2"]
    assert [desk.answer_check(check, COMMIT).code for check in checks] == [0, 0]
    assert ([desk.check(60) for _ in range(3)], len(desk.stored("T", 2))) == ([[]] * 3, 2)


def test_a_commit_after_the_message_was_put_again_is_known_by_its_key() -> None:
    desk = Desk()
    desk.prepare()
    (check,) = desk.check(7)
    assert desk.answer_check(check, COMMIT).code == 0
    desk.restart()
    assert (desk.check(60), len(desk.stored("T", 2))) == ([], 1)


def test_a_late_answer_to_an_earlier_check_does_not_commit_again() -> None:
    desk = Desk()
    desk.prepare()
    (check,) = desk.check(7)
    assert desk.answer_check(check, COMMIT).code == 0
    assert [desk.check(60) for _ in range(3)] == [[]] * 3
    assert desk.answer_check(check, COMMIT).code == ResponseCode.ILLEGAL_OPERATION
    assert len(desk.stored("T", 2)) == 1


def test_undecided_transactions_survive_a_restart() -> None:
    desk = Desk()
    desk.prepare("K1")
    sent = desk.prepare("K2")
    desk.end(sent, COMMIT)
    desk.controller.transactions.stop()
    desk.controller.dispatch()
    desk.restart()
    assert [check.ext_fields["msgId"] for check in desk.check(60)] == ["K1"]
    assert desk.check(60)[0].ext_fields["tranStateTableOffset"] == "3"


def test_decisions_go_into_one_operation_unless_they_are_many() -> None:
    desk = Desk(transaction_op_msg_max_size=9)
    sent = [desk.prepare(f"K{number}") for number in range(7)]
    for one in sent:
        desk.end(one, ROLLBACK)
    assert desk.operations() == [b"0,1,2,3,4,"]
    desk.broker.clock.advance(3)
    assert desk.operations() == [b"0,1,2,3,4,", b"5,6,"]
    (first, _) = desk.stored(OP_TOPIC)
    assert (first.properties, first.born_host) == ({"WAIT": "true", "TAGS": "d"}, "127.0.0.2:20911")


def test_a_store_that_takes_nothing_leaves_the_transaction_open(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    sent = desk.prepare()
    with monkeypatch.context() as patch:
        patch.setattr(desk.broker.store, "put_message", lambda _: PutResult(PutStatus.SERVICE_NOT_AVAILABLE))
        refused = desk.end(sent, COMMIT)
        assert (refused.code, refused.remark) == (ResponseCode.SERVICE_NOT_AVAILABLE, "SERVICE_NOT_AVAILABLE")
        assert (desk.check(7), desk.positions()) == ([], (0, 0))
        assert desk.end(sent, ROLLBACK).code == 0
        desk.broker.clock.advance(3)
    desk.broker.clock.advance(3)
    assert (desk.operations(), desk.check(60)) == ([b"0,"], [])


def test_a_delayed_transaction_waits_after_its_commit() -> None:
    desk = Desk()
    sent = desk.prepare(more="DELAY\x012\x02")
    assert [one.topic for one in desk.stored(HALF_TOPIC)] == [HALF_TOPIC]
    desk.end(sent, COMMIT)
    (waiting,) = desk.stored("SCHEDULE_TOPIC_XXXX", 1)
    assert (waiting.properties["REAL_TOPIC"], waiting.properties["REAL_QID"]) == ("T", "2")


@pytest.mark.parametrize(
    ("changed", "code", "remark"),
    [
        ({"producerGroup": "OTHER"}, 1, "The producer group wrong"),
        ({"commitOrRollback": "4"}, 1, "EndTransactionRequestHeader.commitOrRollback: not one of (0, 8, 12), got '4'"),
        ({"tranStateTableOffset": "1"}, 1, "The transaction state table offset wrong"),
        ({"commitLogOffset": "1"}, 1, "Find prepared transaction message failed"),
        ({"commitLogOffset": "-1"}, 1, "Find prepared transaction message failed"),
        ({"commitLogOffset": "9223372036854775807"}, 1, "Find prepared transaction message failed"),
    ],
)
def test_an_end_of_a_transaction_that_is_not_there_changes_nothing(
    changed: dict[str, str], code: int, remark: str
) -> None:
    desk = Desk()
    sent = desk.prepare()
    answer = desk.end(sent, COMMIT, **changed)
    assert (answer.code, answer.remark) == (code, remark)
    assert desk.stored("T", 2) == []
    assert desk.end(sent, COMMIT).code == 0


def test_a_message_that_is_no_half_message_cannot_be_committed() -> None:
    desk = Desk()
    sent = desk.prepare()
    desk.end(sent, COMMIT)
    (message,) = desk.stored("T", 2)
    answer = desk.end(sent, COMMIT, commitLogOffset=str(message.physical_offset))
    assert (answer.code, answer.remark) == (1, "Find prepared transaction message failed")


@pytest.mark.parametrize(
    "missing", ["producerGroup", "commitLogOffset", "tranStateTableOffset", "commitOrRollback", "msgId"]
)
def test_an_end_without_a_field_names_it(missing: str) -> None:
    fields = {
        "producerGroup": "PG",
        "commitLogOffset": "0",
        "tranStateTableOffset": "0",
        "commitOrRollback": "8",
        "msgId": "K",
    }
    del fields[missing]
    answer = Desk().peer.ask(RequestCode.END_TRANSACTION, fields)
    assert (answer.code, missing in str(answer.remark)) == (1, True)


def test_brokers_that_refuse_transactions_say_so() -> None:
    answer = Desk(reject_transaction_message=True).prepare()
    assert (answer.code, answer.remark) == (16, "the broker[127.0.0.2] sending transaction message is forbidden")


def test_a_slave_ends_nothing() -> None:
    fields = {
        "producerGroup": "PG",
        "commitLogOffset": "0",
        "tranStateTableOffset": "0",
        "commitOrRollback": "8",
        "msgId": "K",
    }
    assert (
        Desk(broker_role="SLAVE").peer.ask(RequestCode.END_TRANSACTION, fields).code == ResponseCode.SLAVE_NOT_AVAILABLE
    )


def test_a_damaged_operation_is_passed_over_and_a_stop_ends_a_running_round() -> None:
    desk = Desk()
    desk.prepare()

    for body, tags in ((b"0,x,", "d"), (b"0,", "e")):
        desk.broker.store.put_message(
            InnerMessage(OP_TOPIC, 0, body, f"TAGS\x01{tags}\x02".encode(), {"TAGS": tags}, 0)
        )
    desk.controller.dispatch()
    assert len(desk.check(7)) == 1
    running = desk.controller.transactions.check()
    desk.controller.transactions.stop()
    assert isinstance(running, defer.Deferred) and running.called
    desk.broker.clock.advance(1)
