"""Clients that do not read their answers, over real sockets."""

from __future__ import annotations

from twisted.internet import defer, protocol, reactor, task
from twisted.trial.unittest import TestCase

from tests.support.remoting import frames
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic

BODY = bytes(1 << 20)
COUNT = 60


class Client(protocol.Protocol):
    """Reads nothing until `read` is called; then until it has all answers."""

    def connectionMade(self) -> None:
        self.transport.pauseProducing()
        self.decoder = FrameDecoder()
        self.opaques: list[int] = []
        self.all_there: defer.Deferred[None] = defer.Deferred()
        self.lost: defer.Deferred[None] = defer.Deferred()

    def read(self) -> None:
        self.transport.resumeProducing()

    def dataReceived(self, data: bytes) -> None:
        self.opaques += [command.opaque for command in self.decoder.receive_data(data)]
        if len(self.opaques) == COUNT:
            self.all_there.callback(None)

    def connectionLost(self, reason: object = None) -> None:
        self.lost.callback(None)


class SlowReader(TestCase):
    timeout = 60

    def setUp(self) -> None:
        self.processed = 0
        self.traffic = Traffic({1: self._answer}, reactor)  # type: ignore[arg-type]
        self.factory = RemotingServerFactory(self.traffic)
        self.port = reactor.listenTCP(0, self.factory, interface="127.0.0.1")  # type: ignore[attr-defined]
        self.addCleanup(self.port.stopListening)

    def _answer(self, channel: SocketChannel, command: RemotingCommand) -> RemotingCommand:
        self.processed += 1
        return command.answer(body=BODY)

    async def connected(self) -> Client:
        creator = protocol.ClientCreator(reactor, Client)
        client: Client = await creator.connectTCP("127.0.0.1", self.port.getHost().port)
        client.transport.write(frames(*(RemotingCommand(1, opaque=opaque) for opaque in range(COUNT))))
        return client

    async def settled(self) -> None:
        """Until the server has stopped to process."""
        before = -1
        while before != self.processed or not self.processed:
            before = self.processed
            await task.deferLater(reactor, 0.3)  # type: ignore[arg-type]

    def test_requests_wait_until_their_answers_are_taken_and_none_is_lost(self) -> defer.Deferred[None]:
        async def scenario() -> None:
            client = await self.connected()
            await self.settled()
            self.assertLess(self.processed, COUNT // 2)
            self.assertLess(self.traffic.budget.unsent_bytes, 3 * len(BODY))
            client.read()
            await client.all_there
            self.assertEqual(client.opaques, list(range(COUNT)))
            self.assertEqual(self.traffic.budget.unsent_bytes, 0)
            client.transport.loseConnection()
            await client.lost

        return defer.Deferred.fromCoroutine(scenario())

    def test_a_paused_channel_can_be_closed(self) -> defer.Deferred[None]:
        async def scenario() -> None:
            client = await self.connected()
            await self.settled()
            (channel,) = self.factory.channels
            channel.close()
            client.read()
            await client.lost
            await task.deferLater(reactor, 0.1)  # type: ignore[arg-type]
            self.assertEqual(list(self.factory.channels), [])
            self.assertEqual(self.traffic.budget.unsent_bytes, 0)

        return defer.Deferred.fromCoroutine(scenario())

    def test_answers_that_come_all_at_once_are_dropped_past_the_limit(self) -> defer.Deferred[None]:
        later: list[tuple[RemotingCommand, defer.Deferred[RemotingCommand]]] = []

        def postpone(channel: SocketChannel, command: RemotingCommand) -> defer.Deferred[RemotingCommand]:
            later.append((command, defer.Deferred()))
            return later[-1][1]

        async def scenario() -> None:
            client = await self.connected()
            while len(later) < COUNT:
                await task.deferLater(reactor, 0.05)  # type: ignore[arg-type]
            (channel,) = self.factory.channels
            for command, answer in later:
                answer.callback(command.answer(body=BODY))
            transport = channel.transport
            held = len(transport.dataBuffer) + sum(map(len, transport._tempDataBuffer))  # type: ignore[attr-defined]
            self.assertLess(held, 4 * len(BODY))
            client.read()
            await client.lost
            self.assertEqual(self.traffic.budget.unsent_bytes, 0)

        self.traffic.budget.options.max_unsent_bytes_by_channel = 2 * len(BODY)
        self.traffic.processors[1] = postpone  # type: ignore[index]
        return defer.Deferred.fromCoroutine(scenario())
