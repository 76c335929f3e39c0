"""The name server as a service: brokers over connections, expiry by the clock, start and stop."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any
from unittest.mock import patch

from twisted.application.service import IService
from twisted.internet import reactor
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorSocket
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.client import Agent, readBody
from zope.interface import implementer
from zope.interface.verify import verifyObject

from tests.support.remoting import ClosingTransport, connect, frames, sent
from tests.twisted_mq.namesrv.test_namesrv_requests import registered
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.namesrv.service import NamesrvService, make_namesrv
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.listen import PortError
from twisted_mq.stopping import STEP_SECONDS


def folder(case: SynchronousTestCase) -> str:
    """A directory that goes with its test."""
    made = tempfile.mkdtemp(prefix="mq-test-")
    case.addCleanup(shutil.rmtree, made)
    return made


def options(folder: str, **settings: Any) -> NamesrvOptions:
    return NamesrvOptions(
        bind_address="127.0.0.1",
        listen_port=0,
        kv_config_path=os.path.join(folder, "kvConfig.json"),
        config_store_path=os.path.join(folder, "namesrv.properties"),
        **settings,
    )


def register(broker_id: int = 0, **changes: str) -> RemotingCommand:
    fields = {
        "brokerName": "b1",
        "brokerAddr": f"127.0.0.1:{10911 + broker_id}",
        "clusterName": "C",
        "haServerAddr": "127.0.0.1:10912",
        "brokerId": str(broker_id),
        **changes,
    }
    return RemotingCommand.request(RequestCode.REGISTER_BROKER, fields, registered())


class FakePort:
    """Result of adoptStreamPort."""

    def __init__(self) -> None:
        self.stopped = 0

    def stopListening(self) -> None:
        self.stopped += 1


@implementer(IReactorSocket)
class ClockReactor(Clock):
    """A clock that takes sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.port = FakePort()

    def adoptStreamPort(self, descriptor: int, family: int, factory: Any) -> FakePort:
        return self.port


class NamesrvClockTests(SynchronousTestCase):
    """With a virtual clock and connections in memory."""

    def setUp(self) -> None:
        self.reactor = ClockReactor()
        self.service: NamesrvService

    def start(self, broker_expiry_ms: int = 120_000, **settings: Any) -> None:
        self.service = make_namesrv(options(folder(self), **settings), self.reactor, broker_expiry_ms=broker_expiry_ms)
        self.service.startService()
        self.addCleanup(self.service.stopService)

    def link(self) -> ClosingTransport:
        return connect(self.service.factory.buildProtocol(None))

    def ask(self, link: ClosingTransport, command: RemotingCommand) -> RemotingCommand:
        link.protocol.dataReceived(frames(command))
        (answer,) = sent(link)
        return answer

    def brokers(self) -> dict[str, dict[int, str]]:
        return {name: data.broker_addrs for name, data in self.service.routes.brokers.items()}

    def test_is_a_service(self) -> None:
        self.start()
        verifyObject(IService, self.service)
        self.assertEqual(self.service.name, "namesrv")

    def test_answers_carry_the_opaque_of_their_request(self) -> None:
        self.start()
        command = register()
        command.opaque = 77
        answer = self.ask(self.link(), command)
        self.assertEqual((answer.code, answer.opaque, answer.is_response), (0, 77, True))

    def test_unknown_code_is_an_answer(self) -> None:
        self.start()
        answer = self.ask(self.link(), RemotingCommand.request(9999))
        self.assertEqual((answer.code, answer.remark), (3, " request type 9999 not supported"))

    def test_missing_field_is_an_answer_that_names_it(self) -> None:
        self.start()
        link = self.link()
        answer = self.ask(link, RemotingCommand.request(RequestCode.GET_KV_CONFIG, {"namespace": "N"}))
        self.assertEqual(answer.code, 1)
        self.assertIn("GetKVConfigRequestHeader.key", answer.remark)
        self.assertEqual(self.ask(link, register()).code, 0)

    def test_damaged_body_is_an_answer_and_changes_nothing(self) -> None:
        self.start()
        damaged = register()
        damaged.body = b'{"topicConfigSerializeWrapper":{"topicConfigTable":7}}'
        answer = self.ask(self.link(), damaged)
        self.assertEqual(answer.code, 1)
        self.assertEqual(self.brokers(), {})

    def test_lost_connection_unregisters_its_broker(self) -> None:
        self.start()
        first, second = self.link(), self.link()
        self.ask(first, register())
        self.ask(second, register(1))
        first.loseConnection()
        self.assertEqual(self.brokers(), {"b1": {1: "127.0.0.1:10912"}})

    def test_silent_broker_is_forgotten_and_its_connection_closed(self) -> None:
        self.start(broker_expiry_ms=20_000, scan_not_active_broker_interval=10_000)
        link = self.link()
        self.ask(link, register())
        self.reactor.pump([10.0, 10.0])
        self.assertEqual(len(self.brokers()), 1)
        self.reactor.advance(10.0)
        self.assertEqual((self.brokers(), link.disconnecting), ({}, True))

    def test_a_scan_that_fails_is_not_the_last(self) -> None:
        self.start(broker_expiry_ms=20_000, scan_not_active_broker_interval=10_000)
        link = self.link()
        self.ask(link, register())
        with (
            patch.object(RouteTable, "expire", side_effect=KeyError("broker")),
            self.assertLogs("twisted_mq.periodic", "CRITICAL") as logged,
        ):
            self.reactor.pump([10.0, 10.0])
        self.reactor.advance(10.0)
        self.assertEqual((len(logged.output), self.brokers(), link.disconnecting), (1, {}, True))

    def test_broker_that_registers_again_and_again_stays(self) -> None:
        self.start(broker_expiry_ms=20_000)
        link = self.link()
        for _ in range(10):
            self.ask(link, register())
            self.reactor.pump([5.0] * 3)
        self.assertEqual(len(self.brokers()), 1)

    def test_idle_connection_is_closed(self) -> None:
        self.start(server_channel_max_idle_time_seconds=120)
        self.service.factory.doStart()
        self.addCleanup(self.service.factory.doStop)
        link = self.link()
        self.reactor.pump([30.0] * 6)
        self.assertTrue(link.disconnecting)

    def test_stop_closes_everything_and_may_be_repeated(self) -> None:
        self.start()
        link = self.link()
        self.successResultOf(self.service.stopService())
        self.successResultOf(self.service.stopService())
        self.assertEqual((self.reactor.port.stopped, link.disconnecting), (1, True))
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_stop_goes_on_whatever_goes_wrong(self) -> None:
        self.start()
        link, port = self.link(), self.reactor.port
        self.patch(port, "stopListening", Deferred)
        self.patch(self.service._turns, "stop", lambda: fail(OSError("no")))
        with capturedLogs() as events:
            stopped = self.service.stopService()
            self.assertNoResult(stopped)
            self.reactor.advance(STEP_SECONDS)
            self.successResultOf(stopped)
        self.assertTrue(link.disconnecting)
        self.assertEqual(
            [formatEvent(event) for event in events],
            [
                "stop: close of the port took more than 10.0 s, the stop continues without",
                "stop: end of sliced work failed, the stop continues without: no",
            ],
        )

    def test_service_that_never_started_may_be_stopped(self) -> None:
        self.successResultOf(make_namesrv(options(folder(self)), self.reactor).stopService())


class Listener:
    """A broker's port: `first` fires with the first command that comes in."""

    def __init__(self) -> None:
        self.first: Deferred[RemotingCommand] = Deferred()
        factory = Factory.forProtocol(lambda: _Listening(self.first))
        factory.noisy = False
        self._port = reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.address = f"127.0.0.1:{self._port.getHost().port}"

    def close(self) -> Deferred[None]:
        return self._port.stopListening()


class _Listening(Protocol):
    def __init__(self, first: Deferred[RemotingCommand]) -> None:
        self._first = first
        self._decoder = FrameDecoder()

    def dataReceived(self, data: bytes) -> None:
        for command in self._decoder.receive_data(data):
            self._first.callback(command)


class NamesrvLoopbackTests(TestCase):
    """On real sockets."""

    def setUp(self) -> None:
        self.service = make_namesrv(options(folder(self), notify_min_broker_id_changed=True), reactor)
        self.service.startService()
        self.addCleanup(self.service.stopService)

    async def test_port_is_known_after_start(self) -> None:
        self.assertGreater(self.service.port, 0)
        client = RemotingClient(reactor)
        self.addCleanup(client.close)
        answer = await client.invoke(f"127.0.0.1:{self.service.port}", register())
        self.assertEqual(answer.code, 0)

    def test_busy_port_is_an_error_that_names_it(self) -> None:
        taken = options(folder(self))
        taken.listen_port = self.service.port
        other = make_namesrv(taken, reactor)
        error = self.assertRaises(PortError, other.startService)
        self.assertIn(f"port {self.service.port} on 127.0.0.1 is in use", str(error))
        self.assertFalse(other.running)

    async def test_brokers_are_told_of_a_new_lowest_id(self) -> None:
        """The name server connects to the brokers' own ports and sends NOTIFY_MIN_BROKER_ID_CHANGE, one-way."""
        broker = Listener()
        self.addCleanup(broker.close)
        client = RemotingClient(reactor)
        self.addCleanup(client.close)
        here = f"127.0.0.1:{self.service.port}"
        for broker_id, address in ((0, "127.0.0.1:1"), (1, broker.address)):
            await client.invoke(here, register(broker_id, brokerAddr=address, enableActingMaster="true"))
        gone = {"brokerName": "b1", "brokerAddr": "127.0.0.1:1", "clusterName": "C", "brokerId": "0"}
        await client.invoke(here, RemotingCommand.request(RequestCode.UNREGISTER_BROKER, gone))
        told = await broker.first
        self.assertEqual((told.code, told.is_one_way), (RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, True))
        expected = {"minBrokerId": "1", "minBrokerAddr": broker.address, "offlineBrokerAddr": "127.0.0.1:1"}
        self.assertEqual(told.ext_fields, expected)


class MetricsTest(TestCase):
    async def test_its_page_has_figures_and_says_that_it_is_well(self) -> None:
        server = make_namesrv(
            options(folder(self), metrics_exporter_type=MetricsExporterType.PROM, metrics_prom_exporter_port=0), reactor
        )
        server.startService()
        self.addCleanup(server.stopService)
        pages = {}
        for path in ("metrics", "health", "ready"):
            response = await Agent(reactor).request(b"GET", f"http://127.0.0.1:{server.metrics_port}/{path}".encode())
            pages[path] = response.code, (await readBody(response)).decode()
        self.assertEqual({code for code, _ in pages.values()}, {200})
        self.assertIn('mq_namesrv_topics{node_id="127.0.0.1:0",node_type="namesrv"} 0.0', pages["metrics"][1])
