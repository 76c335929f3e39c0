"""The transactional producer against brokers in memory."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer

from tests.support.client_case import ClientCase
from twisted_mq.client import Message, MessageIllegal, Producer, TransactionProducer, TransactionState
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import CheckTransactionStateRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.errors import RemotingSendError

COMMIT, ROLLBACK, UNKNOWN = TransactionState.COMMIT, TransactionState.ROLLBACK, TransactionState.UNKNOWN
END = RequestCode.END_TRANSACTION


class TransactionProducerTests(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 1})
        self.asked: list[Any] = []
        self.answer: Any = COMMIT
        self.producer = TransactionProducer(self.clock, "g", check=self.check, **self.client_arguments())
        self.run_to_end(self.producer.start())

    def tearDown(self) -> None:
        self.run_to_end(self.producer.stop())
        self.flushLoggedErrors()

    def check(self, message: Any) -> Any:
        self.asked.append(message)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def send(self, execute: Any, **more: Any) -> Any:
        return self.run_to_end(self.producer.send_in_transaction(Message("T", b"x", **more), execute))

    def ends(self) -> list[tuple[int, int, int, bool]]:
        return [
            (one.commit_or_rollback, one.tran_state_table_offset, one.commit_log_offset, one.from_transaction_check)
            for one in self.broker.headers(END)
        ]

    def ask(self, group: str = "g") -> None:
        """The broker asks about the first message it has."""
        stored = self.broker.queues["T", 0][0].record
        if group != "g":
            stored = stored.replace(b"PGROUP\x01g", b"PGROUP\x01" + group.encode())
        header = CheckTransactionStateRequestHeader(
            topic="HALF", commit_log_offset=77, tran_state_table_offset=5, msg_id="K", transaction_id="K"
        )
        request = RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, encode_header(header), stored)
        self.broker.producers["g"].send_one_way(request)
        self.settle()

    def test_a_commit_names_the_message_that_the_broker_stored(self) -> None:
        self.send(lambda message: ROLLBACK)
        result = self.send(lambda message: COMMIT)
        (first, second) = self.broker.queues["T", 0]
        self.assertEqual((result.state, result.error), (COMMIT, None))
        self.assertEqual(self.ends(), [(12, 0, 0, False), (8, 1, len(first.record), False)])
        end = self.broker.headers(END)[1]
        self.assertEqual((end.producer_group, end.msg_id), ("g", result.sent.msg_id))
        self.assertEqual(
            (second.properties["TRAN_MSG"], second.properties["PGROUP"], second.sys_flag), ("true", "g", 4)
        )

    def test_the_local_transaction_may_take_its_time(self) -> None:
        waiting: defer.Deferred[TransactionState] = defer.Deferred()
        running = self.begin(self.producer.send_in_transaction(Message("T", b"x"), lambda message: waiting))
        self.assertNoResult(running)
        self.assertEqual(self.ends(), [])
        waiting.callback(COMMIT)
        self.settle()
        self.assertEqual(self.successResultOf(running).state, COMMIT)

    def test_an_error_in_the_local_transaction_leaves_it_to_the_check(self) -> None:
        failure = LookupError("no such account")

        def execute(message: Any) -> TransactionState:
            raise failure

        result = self.send(execute)
        self.assertEqual((result.state, result.error, self.ends()), (UNKNOWN, failure, [(0, 0, 0, False)]))

    def test_a_delay_level_is_left_out(self) -> None:
        self.send(lambda message: COMMIT, delay_time_level=3)
        self.assertNotIn("DELAY", self.broker.queues["T", 0][0].properties)

    def test_a_message_that_cannot_be_sent_executes_nothing(self) -> None:
        executed: list[Any] = []
        self.run_to_failure(self.producer.send_in_transaction(Message("T", b""), executed.append), MessageIllegal)
        self.assertEqual(executed, [])

    def test_a_broker_that_asks_is_told_what_the_check_finds(self) -> None:
        self.send(lambda message: UNKNOWN)
        for answer in (COMMIT, defer.succeed(ROLLBACK), LookupError("gone")):
            self.answer = answer
            self.ask()
        self.assertEqual([one.body for one in self.asked], [b"x"] * 3)
        self.assertEqual(self.ends()[1:], [(8, 5, 77, True), (12, 5, 77, True), (0, 5, 77, True)])

    def test_groups_that_are_not_here_are_not_answered_for(self) -> None:
        self.send(lambda message: UNKNOWN)
        self.ask("h")
        self.assertEqual((self.asked, len(self.ends())), ([], 1))

    def test_plain_producers_are_not_asked(self) -> None:
        plain = Producer(self.clock, "p", client=self.producer.client)
        self.run_to_end(plain.start())
        self.send(lambda message: UNKNOWN)
        self.ask("p")
        self.assertEqual((self.asked, len(self.ends())), ([], 1))
        self.run_to_end(plain.stop())

    def test_an_end_that_does_not_reach_the_broker_is_no_failure(self) -> None:
        def execute(message: Any) -> TransactionState:
            self.producer.client.routes.master = lambda *_: defer.fail(RemotingSendError("gone"))  # type: ignore[method-assign, assignment]
            return COMMIT

        self.assertEqual((self.send(execute).state, self.ends()), (COMMIT, []))
