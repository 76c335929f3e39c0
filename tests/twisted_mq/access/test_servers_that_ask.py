"""Name servers, masters and slaves that ask each other, on real sockets; and no word of a secret wherever one may look."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from twisted.internet import defer, reactor
from twisted.internet.task import deferLater
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, readBody

from twisted_mq.broker.options import BrokerOptions, BrokerRole
from twisted_mq.broker.service import BrokerService, make_broker
from twisted_mq.broker.tap import EmbeddedNamesrv, embedded_settings
from twisted_mq.client import ClientOptions, Message, Producer, RocketMQError
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import NamesrvService, make_namesrv
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.remoting.client import RemotingClient

PLANTED = "planted-9f1c"
SECRETS = {name: f"{PLANTED}-{name}" for name in ("root", "inner", "ada", "key")}
ASKING: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": json.dumps({"username": "root", "password": SECRETS["root"]}),
    "inner_client_authentication_credentials": json.dumps({"accessKey": "inner", "secretKey": SECRETS["inner"]}),
    "tls_server_key_password": SECRETS["key"],
}
ROOT = Credentials("root", SECRETS["root"])


class AskingCase(TestCase):
    timeout = 60

    def setUp(self) -> None:
        self.lines: list[str] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)
        self.clients: dict[Credentials | None, RemotingClient] = {}

    def note(self, event: dict[str, Any]) -> None:
        self.lines.append(f"{formatEvent(event)} {event!r}")

    def namesrv(self, **more: Any) -> NamesrvService:
        folder = Path(self.mktemp())
        options = NamesrvOptions(
            bind_address="127.0.0.1",
            listen_port=0,
            kv_config_path=str(folder / "kvConfig.json"),
            config_store_path=str(folder / "namesrv.properties"),
            auth_config_path=str(folder),
            **ASKING | more,
        )
        server = make_namesrv(options, reactor)
        server.startService()
        self.addCleanup(server.stopService)
        return server

    async def broker(self, **more: Any) -> BrokerService:
        broker = make_broker(self.options(**more), reactor)
        broker.startService()
        self.addCleanup(broker.stopService)
        await broker.started
        return broker

    def options(self, **more: Any) -> BrokerOptions:
        self.store = self.mktemp()
        settings: dict[str, Any] = {
            "broker_name": "b", "bind_address": "127.0.0.1", "broker_ip1": "127.0.0.1", "listen_port": 0,
            "namesrv_addr": "", "store_path_root_dir": self.store, "mapped_file_size_commit_log": 1 << 20,
        }  # fmt: skip
        return BrokerOptions(**settings | ASKING | more)

    async def ask(
        self,
        port: int,
        code: int,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        who: Credentials | None = ROOT,
    ) -> RemotingCommand:
        if who not in self.clients:
            self.clients[who] = RemotingClient(reactor, credentials=who)
            self.addCleanup(self.clients[who].close)
        return await self.clients[who].invoke(f"127.0.0.1:{port}", RemotingCommand.request(code, fields, body))

    async def until(self, true: Any) -> None:
        while not await defer.maybeDeferred(true):
            await deferLater(reactor, 0.01)


class NameServersTest(AskingCase):
    async def test_a_name_server_asks_brokers_and_clients(self) -> None:
        namesrv = self.namesrv()
        broker = await self.broker(namesrv_addr=f"127.0.0.1:{namesrv.port}")
        route = (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TBW102"})
        self.assertEqual((await self.ask(namesrv.port, *route)).code, 0)
        stranger = await self.ask(namesrv.port, *route, who=None)
        self.assertEqual((stranger.code, stranger.remark), (16, "username cannot be null."))
        for port in (namesrv.port, broker.port):
            body = json.dumps({"password": SECRETS["ada"]}).encode()
            made = await self.ask(port, RequestCode.AUTH_CREATE_USER, {"username": "ada"}, body)
            self.assertEqual((made.code, made.remark), (0, None))
        ada = Credentials("ada", SECRETS["ada"])
        refused = await self.ask(namesrv.port, RequestCode.GET_BROKER_CLUSTER_INFO, who=ada)
        said = "User:ada has no permission to access Cluster:namesrv from 127.0.0.1, no matched policies."
        self.assertEqual((refused.code, refused.remark), (16, said))
        refused = await self.ask(namesrv.port, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}, who=ada)
        self.assertEqual(refused.code, 16)

    async def test_a_broker_that_does_not_sign_is_not_taken(self) -> None:
        namesrv = self.namesrv()
        await self.broker(namesrv_addr=f"127.0.0.1:{namesrv.port}", inner_client_authentication_credentials=None)
        shown = await self.ask(namesrv.port, RequestCode.GET_BROKER_CLUSTER_INFO)
        self.assertEqual(json.loads(shown.body)["brokerAddrTable"], {})
        self.assertEqual(
            len([line for line in self.lines if line.startswith("name server") and "refused: CODE: 16" in line]), 1
        )

    async def test_an_embedded_name_server_knows_its_brokers_users(self) -> None:
        options = self.options()
        both = EmbeddedNamesrv(options, embedded_settings(options, 0), reactor)
        both.startService()
        self.addCleanup(both.stopService)
        namesrv, broker = both.services
        await broker.started
        body = json.dumps({"password": SECRETS["ada"], "userType": "Super"}).encode()
        self.assertEqual((await self.ask(broker.port, RequestCode.AUTH_CREATE_USER, {"username": "ada"}, body)).code, 0)
        options = ClientOptions(access_key="ada", secret_key=SECRETS["ada"])
        producer = Producer(reactor, "P", f"127.0.0.1:{namesrv.port}", client_options=options)
        await producer.start()
        self.addCleanup(producer.stop)
        self.assertEqual((await producer.send(Message("T", b"x"))).status.name, "SEND_OK")

    def test_an_embedded_name_server_needs_a_broker_that_signs(self) -> None:
        options = self.options(inner_client_authentication_credentials=None)
        both = EmbeddedNamesrv(options, embedded_settings(options, 0), reactor)
        error = self.assertRaises(ConfigError, both.startService)
        said = "innerClientAuthenticationCredentials=: must be set: the name server of this process checks it too"
        self.assertEqual(str(error), said)


class SlavesTest(AskingCase):
    async def test_a_slave_signs_what_it_asks_of_its_master(self) -> None:
        namesrv = self.namesrv()
        address = f"127.0.0.1:{namesrv.port}"
        master = await self.broker(namesrv_addr=address, broker_role=BrokerRole.SYNC_MASTER)
        fields = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
                  "topicFilterType": "SINGLE_TAG", "order": "false"}  # fmt: skip
        self.assertEqual((await self.ask(master.port, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)).code, 0)
        slave = await self.broker(namesrv_addr=address, broker_role=BrokerRole.SLAVE, broker_id=1)
        await self.until(lambda: slave.controller.topics.get("T") is not None)
        self.assertEqual([line for line in self.lines if "CODE: 16" in line], [])


class SecretsTest(AskingCase):
    async def test_no_log_answer_error_or_file_but_one_has_a_secret(self) -> None:
        namesrv = self.namesrv()
        shows = {"metrics_exporter_type": MetricsExporterType.PROM, "metrics_prom_exporter_port": 0}
        broker = await self.broker(namesrv_addr=f"127.0.0.1:{namesrv.port}", **shows)
        body = json.dumps({"password": SECRETS["ada"]}).encode()
        shown: list[str] = []
        for port in (namesrv.port, broker.port):
            await self.ask(port, RequestCode.AUTH_CREATE_USER, {"username": "ada"}, body)
            for code in (*range(3001, 3011), RequestCode.GET_BROKER_CONFIG, RequestCode.GET_NAMESRV_CONFIG):
                for sent in (body, b"{" + body, b"[]"):
                    answer = await self.ask(port, code, {"username": "ada", "subject": "User:ada"}, sent)
                    shown += [repr(answer), answer.body.decode(errors="replace")]
        options = ClientOptions(access_key="ada", secret_key=SECRETS["ada"], tls_key_password=SECRETS["key"])
        producer = Producer(reactor, "P", f"127.0.0.1:{namesrv.port}", client_options=options)
        await producer.start()
        try:
            await producer.send(Message("Forbidden", b"x"))
        except RocketMQError as error:
            shown += [str(error), repr(error)]
        else:
            self.fail("sent what nobody allowed")
        finally:
            await producer.stop()
        page = await Agent(reactor).request(b"GET", f"http://127.0.0.1:{broker.metrics_port}/metrics".encode())
        shown.append((await readBody(page)).decode())
        self.assertIn("rocketmq_topic_number", shown[-1])
        shown += [repr(one) for one in (options, broker.options, namesrv.options, broker._parts.access)]
        for text in shown + self.lines:
            self.assertNotIn(PLANTED, text)
        self.assertEqual(self.files_with_it(self.store), ["access.json", "access.json.bak"])

    def files_with_it(self, folder: str) -> list[str]:
        paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
        return sorted(os.path.basename(path) for path in paths if PLANTED.encode() in Path(path).read_bytes())
