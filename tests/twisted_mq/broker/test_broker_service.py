"""A broker on loopback: stops, tables on disk, damaged bytes from clients, name servers that are away."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet import defer, protocol, reactor
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.task import deferLater
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import TestCase

from twisted_mq import stopping
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import BrokerService, make_broker
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import NamesrvService, make_namesrv
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.stopping import Step
from twisted_mq.storage.check import check_store
from twisted_mq.storage.errors import StoreLocked

SEND = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0",
        "i": "", "j": "0", "k": "false", "m": "false"}  # fmt: skip
TOPIC = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
         "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip

DAY_SECONDS = 86400.0


class Raw(protocol.Protocol):
    """Takes any bytes and notes when the other side closes."""

    def __init__(self) -> None:
        self.received = b""
        self.closed: defer.Deferred[None] = defer.Deferred()

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: Any = None) -> None:
        self.closed.callback(None)


class BrokerServiceCase(TestCase):
    timeout = 60

    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.client = RemotingClient(reactor)
        self.addCleanup(self.client.close)
        self.lines: list[str] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)

    def note(self, event: dict[str, Any]) -> None:
        if event.get("log_namespace", "").startswith("twisted_mq") and event.get("log_format"):
            self.lines.append(event["log_format"].format(**event))

    def said(self, words: str) -> list[str]:
        return [line for line in self.lines if words in line]

    def options(self, **more: Any) -> BrokerOptions:
        settings: dict[str, Any] = {
            "broker_name": "b", "bind_address": "127.0.0.1", "broker_ip1": "127.0.0.1", "listen_port": 0,
            "namesrv_addr": "", "store_path_root_dir": str(self.path), "mapped_file_size_commit_log": 1 << 20,
        }  # fmt: skip
        return BrokerOptions(**{**settings, **more})

    async def start(self, **more: Any) -> BrokerService:
        broker = make_broker(self.options(**more), reactor)
        broker.startService()
        self.addCleanup(broker.stopService)
        await broker.started
        return broker

    def namesrv(self, port: int = 0) -> NamesrvService:
        folder = self.path.parent / (self.path.name + "-namesrv")
        options = NamesrvOptions(
            bind_address="127.0.0.1",
            listen_port=port,
            kv_config_path=str(folder / "kvConfig.json"),
            config_store_path=str(folder / "namesrv.properties"),
        )
        server = make_namesrv(options, reactor)
        server.startService()
        self.addCleanup(server.stopService)
        return server

    def ask(
        self, port: int, code: int, fields: dict[str, str] | None = None, body: bytes = b""
    ) -> defer.Deferred[RemotingCommand]:
        return self.client.invoke(f"127.0.0.1:{port}", RemotingCommand.request(code, fields or {}, body))

    async def route(self, port: int, topic: str) -> int:
        return (await self.ask(port, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})).code

    async def until(self, true: Any) -> None:
        while not await defer.maybeDeferred(true):
            await deferLater(reactor, 0.01)


class StopsTest(BrokerServiceCase):
    async def test_a_start_that_fails_late_closes_the_store(self) -> None:
        (self.path / "config" / "topics.json").mkdir(parents=True)
        broker = make_broker(self.options(), reactor)
        self.assertRaises(OSError, broker.startService)
        self.assertFalse((self.path / "abort").exists())
        (self.path / "config" / "topics.json").rmdir()
        await self.start()

    async def test_stopping_twice_and_before_the_start_is_harmless(self) -> None:
        await make_broker(self.options(), reactor).stopService()
        broker = await self.start()
        first, second = broker.stopService(), broker.stopService()
        await first
        await second
        await broker.stopService()
        self.assertFalse((self.path / "abort").exists())
        self.assertEqual(len(self.said("broker b stopped")), 1)

    async def test_stopping_while_it_registers(self) -> None:
        hung = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(hung.close)
        broker = make_broker(self.options(namesrv_addr=f"127.0.0.1:{hung.getsockname()[1]}"), reactor)
        broker.startService()
        self.assertFalse(broker.started.called)
        await broker.stopService()
        self.assertTrue(broker.started.called)
        self.assertFalse((self.path / "abort").exists())
        self.assertEqual(len(self.said("not unregistered from name servers")), 1)

    async def test_a_store_in_use_is_refused_and_the_holder_goes_on(self) -> None:
        broker = await self.start()
        error = self.assertRaises(StoreLocked, make_broker(self.options(), reactor).startService)
        self.assertIn(str(self.path), str(error))
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).code, 0)

    async def test_a_table_that_cannot_be_saved_keeps_nothing_from_being_closed(self) -> None:
        broker = await self.start()
        broker.controller.offsets.commit("G", "T", 0, 3)
        (self.path / "config" / "consumerOffset.json").mkdir()
        await broker.stopService()
        self.assertEqual(len(self.said("table not saved at the stop")), 1)
        self.assertFalse((self.path / "abort").exists())
        (self.path / "config" / "consumerOffset.json").rmdir()
        await self.start()

    async def assertStopsAllTheSame(self, broken: Callable[[Callable[[], object]], Callable[[], object]]) -> None:
        """Whichever step does its work and then goes wrong in that way: the store is closed, and that is said once."""
        left = {"the first"}
        broke: set[str] = set()
        while left:
            broker = await self.start(store_path_root_dir=str(self.path / str(len(broke))))
            self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).code, 0)
            steps = broker._steps_of_stop(broker._ports.listening)
            left = {name for name, _ in steps} - broke
            victim = min(left)
            changed = one_broken(steps, victim, broken)
            self.patch(broker, "_steps_of_stop", lambda _, changed=changed: changed)
            self.lines.clear()
            await broker.stopService()
            self.assertEqual(len(self.said(f"stop: {victim} ")), 1, self.lines)
            self.assertEqual(len(self.said("the stop continues without")), 1, self.lines)
            self.assertEqual(len(self.said("broker b stopped")), 1)
            self.assertFalse((self.path / str(len(broke)) / "abort").exists())
            self.assertEqual(check_store(str(self.path / str(len(broke)))), [])
            self.flushLoggedErrors(ZeroDivisionError)
            broke.add(victim)
            left -= broke
        self.assertGreater(len(broke), 15)

    async def test_each_step_may_raise(self) -> None:
        def broken(call: Callable[[], object]) -> Callable[[], object]:
            def work() -> None:
                call()
                raise ZeroDivisionError

            return work

        await self.assertStopsAllTheSame(broken)

    async def test_each_step_may_fail_later(self) -> None:
        def broken(call: Callable[[], object]) -> Callable[[], object]:
            return lambda: defer.maybeDeferred(call).addCallback(lambda _: defer.fail(OSError("no")))

        await self.assertStopsAllTheSame(broken)

    async def test_each_step_may_never_end(self) -> None:
        self.patch(stopping, "STEP_SECONDS", DAY_SECONDS)

        def time_passes() -> defer.Deferred[None]:
            (limit,) = (one for one in reactor.getDelayedCalls() if one.getTime() > reactor.seconds() + DAY_SECONDS / 2)
            limit.reset(0)
            return defer.Deferred()

        def broken(call: Callable[[], object]) -> Callable[[], object]:
            return lambda: defer.maybeDeferred(call).addCallback(lambda _: deferLater(reactor, 0, time_passes))

        await self.assertStopsAllTheSame(broken)

    async def test_what_was_delivered_is_not_written_where_the_store_was_not_closed_well(self) -> None:
        """The copies may be lost: they are delivered again."""
        broker = await self.start()
        saved: list[str] = []
        store, close = broker.controller.store, broker.controller.store.close

        def fail() -> None:
            close()
            raise OSError("disk gone")

        self.patch(store, "close", fail)
        self.patch(broker.controller.waiting, "save", lambda: saved.append("save"))
        self.patch(broker.controller.waiting, "close", lambda: saved.append("close"))
        await broker.stopService()
        self.assertEqual(saved, ["close"])
        self.assertEqual(
            self.said("disk gone"), ["stop: close of the store failed, the stop continues without: disk gone"]
        )

    async def test_what_was_acknowledged_is_there_after_a_restart(self) -> None:
        broker = await self.start()
        for number in range(3):
            await self.ask(broker.port, 310, SEND, b"%d" % number)
        heartbeat = HeartbeatData(client_id="c", consumer_data_set=[ConsumerData(group_name="G")])
        await self.ask(broker.port, RequestCode.HEART_BEAT, body=encode_body(heartbeat))
        offset = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "2"}
        await self.ask(broker.port, RequestCode.UPDATE_CONSUMER_OFFSET, offset)
        topics, groups = broker.controller.topics, broker.controller.groups
        await broker.stopService()
        self.assertEqual(check_store(str(self.path)), [])
        again = await self.start()
        self.assertEqual(again.controller.topics.topics, topics.topics)
        self.assertEqual(again.controller.topics.data_version, topics.data_version)
        self.assertEqual(again.controller.groups.groups, groups.groups)
        self.assertEqual(again.controller.offsets.offsets, {"T@G": {0: 2}})
        self.assertEqual(again.controller.store.max_offset_in_queue("T", 0), 3)

    async def test_each_start_registers_the_same_topics_in_versions_of_its_own(self) -> None:
        versions = []
        for _ in range(2):
            broker = await self.start()
            self.assertEqual(broker._work._heartbeat(broker._parts).version(), broker.registration.version)
            versions.append((broker.controller.topics.data_version, broker.registration.version.counter))
            await broker.stopService()
        (first, shown_first), (second, shown_second) = versions
        self.assertEqual(first, second)
        self.assertNotEqual(shown_first, shown_second)

    async def test_a_damaged_table_is_read_from_its_backup(self) -> None:
        broker = await self.start()
        await self.ask(broker.port, 310, SEND, b"x")
        await self.ask(broker.port, RequestCode.UPDATE_AND_CREATE_TOPIC, {**TOPIC, "topic": "Later"})
        await self.ask(broker.port, RequestCode.UPDATE_AND_CREATE_TOPIC, {**TOPIC, "topic": "Latest"})
        await broker.stopService()
        damaged = self.path / "config" / "topics.json"
        damaged.write_bytes(damaged.read_bytes()[:50])
        again = await self.start()
        self.assertIn("T", again.controller.topics.topics)
        self.assertTrue(damaged.with_name("topics.json.damaged").exists())
        self.assertEqual((await self.ask(again.port, 310, SEND, b"x")).ext_fields["queueOffset"], "1")
        await self.ask(again.port, RequestCode.UPDATE_AND_CREATE_TOPIC, {**TOPIC, "topic": "Last"})
        self.assertGreaterEqual(json.loads(damaged.read_bytes())["topicConfigTable"].keys(), {"T", "Last"})

    async def test_two_damaged_files_do_not_keep_the_broker_down(self) -> None:
        broker = await self.start()
        await self.ask(broker.port, 310, SEND, b"x")
        await broker.stopService()
        for name in ("topics.json", "topics.json.bak", "consumerOffset.json", "subscriptionGroup.json"):
            (self.path / "config" / name).write_bytes(b"\x00garbage")
        again = await self.start()
        self.assertIn("TBW102", again.controller.topics.topics)
        self.assertEqual((await self.ask(again.port, 310, SEND, b"x")).ext_fields["queueOffset"], "1")


class NameServersTest(BrokerServiceCase):
    async def test_a_new_topic_is_known_when_its_answer_comes_and_gone_after_the_stop(self) -> None:
        server = self.namesrv()
        broker = await self.start(namesrv_addr=f"127.0.0.1:{server.port}")
        self.assertEqual(await self.route(server.port, "T"), 17)
        await self.ask(broker.port, RequestCode.UPDATE_AND_CREATE_TOPIC, TOPIC)
        self.assertEqual(await self.route(server.port, "T"), 0)
        await broker.stopService()
        self.assertEqual(await self.route(server.port, "T"), 17)

    async def test_one_name_server_down_holds_nothing_up_and_is_logged_once(self) -> None:
        server = self.namesrv()
        port = free_ports()
        broker = await self.start(namesrv_addr=f"127.0.0.1:{port};127.0.0.1:{server.port}")
        self.assertEqual((await self.ask(broker.port, RequestCode.UPDATE_AND_CREATE_TOPIC, TOPIC)).code, 0)
        self.assertEqual(await self.route(server.port, "T"), 0)
        self.assertEqual(len(self.said(f"name server 127.0.0.1:{port} not reached")), 1)
        late = self.namesrv(port)
        self.assertEqual(await broker.registration.register(), [True, True])
        self.assertEqual(await self.route(late.port, "T"), 0)
        self.assertEqual(len(self.said(f"name server 127.0.0.1:{port} is back")), 1)

    async def test_a_topic_made_by_a_send_is_registered_at_once(self) -> None:
        server = self.namesrv()
        broker = await self.start(namesrv_addr=f"127.0.0.1:{server.port}")
        await self.ask(broker.port, 310, SEND, b"x")

        async def known() -> bool:
            return await self.route(server.port, "T") == 0

        await self.until(lambda: defer.ensureDeferred(known()))


class BadBytesTest(BrokerServiceCase):
    async def damaged(self, port: int, data: bytes, *, hang_up: bool = False) -> Raw:
        """A client that sends these bytes and waits for the end of its connection."""
        raw = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port), Raw())
        raw.transport.write(data)
        if hang_up:
            raw.transport.loseConnection()
        await raw.closed
        return raw

    async def test_damaged_frames_cost_one_line_and_one_connection(self) -> None:
        broker = await self.start()
        await self.ask(broker.port, 310, SEND, b"first")
        garbage = [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">i", 1 << 30), struct.pack(">i", -1), bytes(64)]
        for number, data in enumerate(garbage, 1):
            await self.damaged(broker.port, data)
            self.assertEqual(len(self.said("damaged frame, connection closed")), number)
            answer = await self.ask(broker.port, 310, SEND, b"next")
            self.assertEqual((answer.code, answer.ext_fields["queueOffset"]), (0, str(number)))

    async def test_a_frame_cut_off_in_the_middle_leaves_nothing(self) -> None:
        broker = await self.start()
        frame = encode_frame(RemotingCommand.request(310, dict(SEND), b"x" * 1000))
        await self.damaged(broker.port, frame + frame[:500], hang_up=True)
        await self.until(lambda: broker.controller.store.max_offset_in_queue("T", 0) == 1)
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).ext_fields["queueOffset"], "1")

    async def test_what_stands_before_the_damage_is_stored_and_answered(self) -> None:
        broker = await self.start()
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"makes the topic")).code, 0)
        frame = encode_frame(RemotingCommand.request(310, dict(SEND), b"good"))
        raw = await self.damaged(broker.port, frame + struct.pack(">i", 1 << 30))
        self.assertIn(b"queueOffset", raw.received)
        await broker.stopService()
        self.assertEqual(check_store(str(self.path)), [])
        self.assertEqual((await self.start()).controller.store.max_offset_in_queue("T", 0), 2)

    async def test_an_unknown_code_is_answered_and_the_connection_lives_on(self) -> None:
        broker = await self.start()
        answer = await self.ask(broker.port, 9999)
        self.assertEqual((answer.code, answer.remark), (3, " request type 9999 not supported"))
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).code, 0)

    async def test_an_idle_connection_is_closed_and_a_busy_client_is_not(self) -> None:
        broker = await self.start(server_channel_max_idle_time_seconds=1)
        raw = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", broker.port), Raw())
        await raw.closed
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).code, 0)


def one_broken(
    steps: list[Step], victim: str, broken: Callable[[Callable[[], object]], Callable[[], object]]
) -> list[Step]:
    """The same steps, the first of that name broken."""
    at = next((index for index, (name, _) in enumerate(steps) if name == victim), None)
    return [(name, broken(call) if index == at else call) for index, (name, call) in enumerate(steps)]


def free_ports() -> int:
    """A port that was free a moment ago, with the two below and the one above."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            try:
                for near in (port - 2, port - 1, port + 1):
                    socket.create_server(("127.0.0.1", near)).close()
            except OSError:
                continue
            return int(port)
