"""Shares by account over real sockets: all clients have one address, as behind a gateway, and each signs for an account."""

from __future__ import annotations

import json

from twisted.internet import reactor

from tests.twisted_mq.access.test_servers_that_ask import SECRETS, AskingCase
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.shares import share_of_account

PLACES = 8
NAMES = ("ada", "bob")
PULL = {
    "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "6", "commitOffset": "0",
    "suspendTimeoutMillis": "30000", "subVersion": "0", "subscription": "*", "consumerGroup": "G",
}  # fmt: skip


class SharesOfAccountsTest(AskingCase):
    async def setUp(self) -> None:  # type: ignore[override]
        super().setUp()
        self.served = await self.broker(pull_thread_pool_queue_capacity=PLACES)
        self.answers: dict[str, list[RemotingCommand]] = {name: [] for name in NAMES}
        for name in NAMES:
            body = json.dumps({"password": SECRETS["ada"], "userType": "Super"}).encode()
            made = await self.ask(self.served.port, RequestCode.AUTH_CREATE_USER, {"username": name}, body)
            self.assertEqual(made.code, 0, made.remark)
        topic = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
                 "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip
        made = await self.ask(self.served.port, RequestCode.UPDATE_AND_CREATE_TOPIC, topic)
        self.assertEqual(made.code, 0, made.remark)

    async def connect(self, name: str) -> RemotingClient:
        """A connection of its own, whose first request says for whom it signs."""
        client = RemotingClient(reactor, credentials=Credentials(name, SECRETS["ada"]))
        self.addCleanup(client.close)
        known = await client.invoke(self.address, RemotingCommand.request(RequestCode.GET_BROKER_CONFIG, {}))
        self.assertEqual(known.code, 0, known.remark)
        return client

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.served.port}"

    def pull(self, name: str, client: RemotingClient, count: int = 1) -> None:
        for _ in range(count):
            answer = client.invoke(self.address, RemotingCommand.request(RequestCode.PULL_MESSAGE, PULL), 30)
            answer.addCallbacks(self.answers[name].append, lambda why: None)

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting pulls of each account."""
        counts = self.served.controller.polling._shares[WaitingKind.PULL]._counts
        return {name: counts.get(share_of_account(name), 0) for name in NAMES}

    def codes(self, name: str) -> list[int]:
        return [answer.code for answer in self.answers[name]]

    async def fill(self) -> RemotingClient:
        """Ada has five of eight places, on two connections; Bob has the others."""
        for count in (2, 3):
            self.pull("ada", await self.connect("ada"), count)
        await self.until(lambda: self.waiting() == {"ada": 5, "bob": 0})
        bob = await self.connect("bob")
        self.pull("bob", bob, 3)
        await self.until(lambda: self.waiting() == {"ada": 5, "bob": 3})
        return bob

    async def test_the_account_with_the_largest_share_gives_way_first(self) -> None:
        bob = await self.fill()
        self.pull("bob", bob)
        await self.until(lambda: self.waiting() == {"ada": 4, "bob": 4})
        await self.until(lambda: self.codes("ada") == [ResponseCode.PULL_NOT_FOUND])
        self.pull("bob", bob)
        await self.until(lambda: self.codes("bob") == [ResponseCode.SYSTEM_BUSY])
        self.assertEqual(self.waiting(), {"ada": 4, "bob": 4})

    async def test_an_account_that_was_served_before_keeps_a_reserve(self) -> None:
        self.pull("ada", await self.connect("ada"))
        await self.until(lambda: self.waiting()["ada"] == 1)
        two_hours_ago = self.served.controller.clock.seconds() - 7200.0
        self.served.controller.polling._served._since[share_of_account("ada")] = two_hours_ago
        self.pull("ada", await self.connect("ada"), 4)
        bob = await self.connect("bob")
        self.pull("bob", bob, 3)
        await self.until(lambda: self.waiting() == {"ada": 5, "bob": 3})
        self.pull("bob", bob)
        await self.until(lambda: self.codes("bob") == [ResponseCode.SYSTEM_BUSY])
        self.assertEqual((self.waiting(), self.codes("ada")), ({"ada": 5, "bob": 3}, []))
