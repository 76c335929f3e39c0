"""Messages that an acting slave sends to another master, and that its own master does not deliver again: three brokers in
memory."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

from twisted.internet import defer
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory
from tests.support.transactions import half_fields
from twisted_mq.broker.acting.duties import ActingDuties
from twisted_mq.broker.acting.escape import AGAIN_SECONDS, HOLD_SECONDS, LOOK_SECONDS, MOST_HELD_SECONDS, SETTLE_SECONDS
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.transaction.half_messages import checked_again
from twisted_mq.protocol.bodies import BrokerData, DelayOffsetSerializeWrapper, QueueData, TopicRouteData, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.names.system_topics import HALF_TOPIC, TRANSACTION_GROUP
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingTimeoutError
from twisted_mq.routing.errors import TopicNotFound
from twisted_mq.storage.tables.escaped_table import DelayOffsetsOfSlave, EscapedMessages
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint

OTHER = "127.0.0.7:20911"
MODE = {"enable_slave_acting_master": True, "enable_remote_escape": True}


class Routes:
    """Routes in a cache of the slave: the topic at its own, lost broker and at another one.

    The own broker's queues still look writable: a name server may not have noticed yet.
    """

    def __init__(self) -> None:
        self.names = ["broker-cap", "broker-b"]
        self.asked = 0

    def get(self, topic: str) -> TopicRouteData | None:
        return None

    async def update(self, topic: str) -> TopicRouteData:
        self.asked += 1
        if not self.names:
            raise TopicNotFound(topic, ("one:9876",))
        perms = {"broker-cap": 6, "broker-b": 6}
        return TopicRouteData(
            queue_datas=[QueueData(name, 4, 4, perms[name], 0) for name in self.names],
            broker_datas=[BrokerData("C", name, {0: OTHER}) for name in self.names],
        )

    async def master(self, broker_name: str, topic: str) -> str:
        assert broker_name == "broker-b"
        return OTHER


class EscapeCase(SynchronousTestCase):
    """A master that is lost, the slave with its log, and another master."""

    def setUp(self) -> None:
        self.folders: list[str] = []
        self.master = self.broker()
        self.other = self.broker(clock=self.master.clock, broker_name="broker-b")
        self.at_master, self.at_other = self.master.connect(), self.other.connect()
        self.routes = Routes()
        self.refusal: int | None = None
        self.is_silent = False
        self.requests: list[RemotingCommand] = []
        self.waiting: list[tuple[defer.Deferred[RemotingCommand], RemotingCommand]] | None = None
        """Sends that the other master takes later; None: it takes each at once."""
        for one in (self.master, self.other):
            one.controller.waiting.start()

    def broker(self, **options: Any) -> BrokerInMemory:
        folder = tempfile.mkdtemp(prefix="mq-test-")
        self.addCleanup(shutil.rmtree, folder)
        self.folders.append(folder)
        return BrokerInMemory(**{"store_path_root_dir": folder, **MODE, **options})

    def invoke(self, address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        self.assertEqual(address, OTHER)
        self.requests.append(command)
        if self.waiting is not None:
            self.waiting.append((defer.Deferred(), command))
            return self.waiting[-1][0]
        if self.is_silent:
            return defer.fail(RemotingTimeoutError(f"{address}: {seconds} s"))
        if self.refusal is not None:
            return defer.succeed(command.answer(self.refusal, "no"))
        return defer.succeed(self.at_other.ask(command.code, command.ext_fields, command.body))

    def send(self, key: str, properties: str = "") -> None:
        fields = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "0", "h": "0", "j": "0"}
        more = {"g": str(self.master.now_ms()), "i": f"UNIQ_KEY\x01{key}\x02{properties}"}
        self.assertEqual(self.at_master.ask(RequestCode.SEND_MESSAGE_V2, fields | more, key.encode()).code, 0)

    def lose_master(self) -> None:
        """The master is gone, the slave has its log and its tables, and acts."""
        master = self.master
        master.controller.waiting.stop()
        tables = {"offsets": master.tables["offsets"]} if not hasattr(self, "slave") else self.slave.tables
        self.slave = self.broker(clock=master.clock, broker_role="SLAVE", broker_id=1, tables=tables,
                                 parts={"route_cache": self.routes})  # fmt: skip
        self.copy_log()
        self.duties = ActingDuties(self.slave.controller, self.invoke)
        self.duties.change(True)

    def copy_log(self) -> None:
        offset = self.slave.store.max_physical_offset()
        while data := self.master.store.read_log(offset, 1 << 20):
            self.slave.store.append_log(offset, bytes(data))
            offset += len(data)
        self.slave.controller.dispatch()

    def take_one(self) -> None:
        """Have the other master take the send that waits; the slave goes on with what follows."""
        assert self.waiting
        answer, command = self.waiting.pop()
        answer.callback(self.at_other.ask(command.code, command.ext_fields, command.body))
        self.master.clock.pump([0.0] * 3)

    def run_for(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.master.clock.advance(0.1)

    def bodies(self, broker: BrokerInMemory) -> list[str]:
        """The topic's messages in a broker."""
        found = []
        for queue_id in range(4):
            records = broker.store.get_message("T", queue_id, 0, 100, 1 << 20, None).records
            found += [decode_message(record).body.decode() for record in records]
        return sorted(found)

    def told_by_slave(self) -> DelayOffsetsOfSlave:
        answer = self.slave.connect().ask(RequestCode.GET_ALL_DELAY_OFFSET)
        return decode_body(DelayOffsetsOfSlave, answer.body)

    def return_master(self, rows: EscapedMessages | None = None) -> None:
        """The master starts on its store again and takes over what the slave says."""
        told = self.told_by_slave().escaped
        assert told is not None
        self.master = self.broker(restarted=self.master)
        self.master.controller.waiting.take_escaped(told if rows is None else rows)
        self.master.controller.waiting.start()


class WaitingTests(EscapeCase):
    def test_what_comes_due_goes_to_the_other_master_and_is_not_delivered_again(self) -> None:
        for number in range(3):
            self.send(f"level {number}", "DELAY\x012\x02")
            self.send(f"timed {number}", "TIMER_DELAY_SEC\x015\x02")
        self.send("later", "DELAY\x014\x02")
        self.send("timed later", "TIMER_DELAY_SEC\x0130\x02")
        self.lose_master()
        self.assertEqual(self.bodies(self.other), [])
        self.run_for(8)
        due = ["level 0", "level 1", "level 2", "timed 0", "timed 1", "timed 2"]
        self.assertEqual(self.bodies(self.other), due)
        self.assertEqual(self.bodies(self.slave), [])
        self.successResultOf(self.duties.stop())
        self.return_master()
        self.run_for(40)
        self.assertEqual(self.bodies(self.master), ["later", "timed later"])
        self.assertEqual(self.bodies(self.other), due)

    def test_copy_leaves_without_its_delay_and_waits_for_the_disk(self) -> None:
        self.send("x", "DELAY\x012\x02")
        self.lose_master()
        self.run_for(6)
        (request,) = self.requests
        properties = dict(pair.split("\x01") for pair in request.ext_fields["i"].split("\x02") if pair)
        self.assertEqual((request.ext_fields["b"], properties.get("DELAY"), properties["WAIT"]), ("T", None, "true"))

    def test_message_that_is_not_acknowledged_is_sent_again_until_it_is(self) -> None:
        """Nothing but SUCCESS counts: a message that waits for the other master's disk may be lost there."""
        self.send("x", "DELAY\x012\x02")
        self.lose_master()
        self.is_silent = True
        self.run_for(8)
        self.is_silent, self.refusal = False, ResponseCode.FLUSH_DISK_TIMEOUT
        self.run_for(3)
        self.assertEqual(self.told_by_slave().escaped, EscapedMessages())
        tries = len(self.requests)
        self.assertTrue(4 <= tries <= 8 / AGAIN_SECONDS, tries)
        self.refusal = None
        self.run_for(HOLD_SECONDS + 1)
        self.assertEqual((self.bodies(self.other), len(self.requests)), (["x"], tries + 1))

    def test_messages_wait_while_no_other_broker_takes_the_topic(self) -> None:
        self.send("x", "DELAY\x012\x02")
        self.lose_master()
        for names in ([], ["broker-cap"]):
            self.routes.names = names
            self.run_for(6)
            self.assertEqual(self.requests, [])
        self.routes.names = ["broker-b"]
        self.run_for(2)
        self.assertEqual(self.bodies(self.other), ["x"])

    def test_without_remote_escape_everything_waits_for_the_master(self) -> None:
        self.send("x", "DELAY\x012\x02")
        self.send("y", "TIMER_DELAY_SEC\x015\x02")
        self.lose_master()
        self.duties.stop()
        self.slave.options.enable_remote_escape = False
        self.duties.change(True)
        self.run_for(20)
        self.assertEqual(self.requests, [])
        self.return_master()
        self.run_for(20)
        self.assertEqual(self.bodies(self.master), ["x", "y"])

    def test_slave_that_acts_a_second_time_does_not_send_the_same_again(self) -> None:
        self.send("x", "DELAY\x012\x02")
        self.send("y", "TIMER_DELAY_SEC\x015\x02")
        self.lose_master()
        self.run_for(8)
        self.successResultOf(self.duties.stop())
        self.duties.change(True)
        self.run_for(8)
        self.assertEqual((self.bodies(self.other), len(self.requests)), (["x", "y"], 2))

    def test_rows_that_the_masters_log_does_not_bear_out_pass_over_nothing(self) -> None:
        """The master lost its log's end, and other messages took the places that the slave's rows name."""
        self.send("x", "DELAY\x012\x02")
        self.send("y", "TIMER_DELAY_SEC\x015\x02")
        self.lose_master()
        self.run_for(8)
        rows = self.told_by_slave().escaped
        self.successResultOf(self.duties.stop())
        self.master = self.broker(clock=self.master.clock)
        self.at_master = self.master.connect()
        self.run_for(1)
        self.send("new x", "DELAY\x012\x02")
        self.send("new y", "TIMER_DELAY_SEC\x015\x02")
        assert rows is not None
        self.assertEqual((len(rows.levels), len(rows.ticks)), (1, 1))
        self.assertEqual(self.master.controller.waiting.take_escaped(rows), 0)
        self.master.controller.waiting.start()
        self.run_for(10)
        self.assertEqual(self.bodies(self.master), ["new x", "new y"])

    def test_checkpoint_says_how_far_the_slave_came(self) -> None:
        """Apache's returning master asks for it, and waits for an answer."""
        self.send("y", "TIMER_DELAY_SEC\x015\x02")
        self.lose_master()
        self.run_for(8)
        answer = self.slave.connect().ask(RequestCode.GET_TIMER_CHECK_POINT)
        told = TimerCheckpoint.decode(answer.body)
        self.assertEqual(told.master_timer_queue_offset, 1)
        self.assertGreaterEqual(told.last_read_time_ms, self.master.now_ms() - 2000)

    def test_each_message_that_left_raises_the_version_of_the_progress(self) -> None:
        """Apache's returning master takes the progress of the newest version: its own, with as high a counter, was just made."""
        for number in range(2):
            self.send(f"level {number}", "DELAY\x012\x02")
        self.lose_master()
        before = self.told_by_slave().data_version.counter
        self.run_for(8)
        told = self.told_by_slave()
        self.assertEqual((told.offset_table, told.data_version.counter), ({2: 2}, before + 2))


class QuestionTests(EscapeCase):
    """A master asks in the very second in which its slave sends messages away."""

    def setUp(self) -> None:
        super().setUp()
        for number in range(3):
            self.send(f"timed {number}", "TIMER_DELAY_SEC\x015\x02")
        self.lose_master()
        self.run_for(5)
        self.waiting = []
        while not self.waiting:
            self.master.clock.advance(0.1)

    def question(self) -> defer.Deferred[EscapedMessages]:
        return defer.ensureDeferred(self.slave.controller.waiting.escaped_so_far())

    def test_answer_waits_for_the_send_under_way_and_names_the_begin_of_a_tick(self) -> None:
        self.take_one()
        answer = self.question()
        self.assertNoResult(answer)
        self.take_one()
        self.assertEqual(self.waiting, [])  # the third one is held back
        self.master.clock.advance(LOOK_SECONDS)
        rows = self.successResultOf(answer)
        self.assertEqual([row.end for row in rows.ticks], [3, 2])  # ticks that are over, and a part of one
        self.master = self.broker(restarted=self.master)
        self.master.controller.waiting.take_escaped(rows)
        self.master.controller.waiting.start()
        self.master.clock.advance(3)
        self.successResultOf(self.duties.stop())
        self.run_for(10)
        self.assertEqual((self.bodies(self.other), self.bodies(self.master)), (["timed 0", "timed 1"], ["timed 2"]))

    def test_row_of_a_whole_run_of_ticks_takes_the_place_of_the_row_of_a_part(self) -> None:
        self.take_one()
        self.question()
        self.take_one()
        self.run_for(HOLD_SECONDS + 1)
        self.take_one()
        self.run_for(2)
        (row,) = self.successResultOf(self.question()).ticks
        self.assertEqual((row.end, row.from_ms < row.to_ms - 2000), (3, True))

    def test_a_send_that_gets_no_answer_is_waited_for_no_longer_than_the_master_waits(self) -> None:
        answer = self.question()
        self.run_for(SETTLE_SECONDS - 0.2)
        self.assertNoResult(answer)
        with capturedLogs() as events:
            self.run_for(0.3)
        self.assertEqual(self.successResultOf(answer).ticks, [])
        self.assertIn("is not told of 1 sends", "".join(map(formatEvent, events)))

    def test_questions_hold_messages_back_for_a_minute_in_all(self) -> None:
        for _ in range(int(MOST_HELD_SECONDS)):
            self.question()
            if self.waiting:
                self.take_one()
            self.run_for(1)
        self.assertEqual(len(self.bodies(self.other)), 1)
        with capturedLogs() as events:
            self.question()
        self.assertIn("hold nothing back any more, after 60 s", "".join(map(formatEvent, events)))
        self.run_for(HOLD_SECONDS)
        self.take_one()
        self.assertEqual(len(self.bodies(self.other)), 2)


class ApachesSlaveTests(EscapeCase):
    """An Apache slave says how far it came, and no more."""

    def take(self) -> None:
        offsets = DelayOffsetSerializeWrapper({2: 2}).offset_table
        waiting = self.master.controller.waiting
        waiting.take_delay_offsets(offsets)
        waiting.take_checkpoint(TimerCheckpoint(self.master.now_ms() + 6000, 0, 0, 2))

    def test_its_word_is_taken_for_the_messages_before_it(self) -> None:
        self.master.controller.waiting.stop()
        for number in range(3):
            self.send(f"level {number}", "DELAY\x012\x02")
            self.send(f"timed {number}", "TIMER_DELAY_SEC\x015\x02")
        self.take()
        self.master.controller.waiting.start()
        self.run_for(10)
        self.assertEqual(self.bodies(self.master), ["level 2", "timed 2"])


class HalfTests(EscapeCase):
    def prepare(self, key: str) -> None:
        fields = half_fields(key, self.master.now_ms(), "", 2)
        self.assertEqual(self.at_master.ask(RequestCode.SEND_MESSAGE_V2, fields, key.encode()).code, 0)

    def halves(self, broker: BrokerInMemory) -> list[Any]:
        records = broker.store.get_message(HALF_TOPIC, 0, 0, 100, 1 << 20, None).records
        return [decode_message(record) for record in records]

    def test_undecided_half_messages_are_prepared_at_the_other_master(self) -> None:
        self.prepare("K1")
        self.prepare("K2")
        self.lose_master()
        self.run_for(1)
        there = self.halves(self.other)
        self.assertEqual([one.properties["UNIQ_KEY"] for one in there], ["K1", "K2"])
        self.assertEqual({(one.properties["REAL_TOPIC"], one.properties["TRAN_MSG"]) for one in there}, {("T", "true")})
        self.assertEqual(self.slave.controller.offsets.query(TRANSACTION_GROUP, HALF_TOPIC, 0), 2)

    def test_half_message_is_not_passed_before_the_other_master_has_it(self) -> None:
        """5.3.3 gives up after ten failures."""
        self.prepare("K1")
        self.lose_master()
        self.is_silent = True
        for _ in range(30):
            self.run_for(1)
            self.duties.check_halves()
        self.assertIn(self.slave.controller.offsets.query(TRANSACTION_GROUP, HALF_TOPIC, 0), (None, 0))
        self.is_silent = False
        self.run_for(2)
        self.duties.check_halves()
        self.run_for(1)
        self.assertEqual(len(self.halves(self.other)), 1)

    def test_half_message_that_was_put_again_leaves_once(self) -> None:
        self.prepare("K1")
        (record,) = self.master.store.get_message(HALF_TOPIC, 0, 0, 1, 1 << 20, None).records
        self.master.store.put_message(checked_again(StoredMessage.read(record)))
        self.master.controller.dispatch()
        self.lose_master()
        self.run_for(1)
        self.assertEqual(len(self.halves(self.slave)), 2)
        self.assertEqual([one.properties["UNIQ_KEY"] for one in self.halves(self.other)], ["K1"])
