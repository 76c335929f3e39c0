"""The periods at which a broker on loopback registers."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.interfaces import IReactorSocket, IReactorThreads
from twisted.internet.task import Clock, deferLater
from zope.interface import implementer

from tests.twisted_mq.broker.test_broker_service import BrokerServiceCase
from twisted_mq.broker.periodic_work import UNKNOWN_SECONDS
from twisted_mq.broker.service import make_broker
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import Traffic


@implementer(IReactorSocket, IReactorThreads)
class VirtualTime(Clock):
    """The reactor's connections and threads, under a clock that the test turns."""

    def __getattr__(self, name: str) -> Any:
        return getattr(reactor, name)


class RegistrationPeriodTest(BrokerServiceCase):
    async def registrations(self, clock: Clock, **more: Any) -> list[RemotingCommand]:
        """Return the requests to a name server of a broker that has registered once."""
        asked: list[RemotingCommand] = []

        def answer(channel: Any, command: RemotingCommand) -> RemotingCommand:
            asked.append(command)
            self.channel = channel
            return command.answer(0)

        traffic = Traffic({103: answer, 104: answer}, reactor)
        server = reactor.listenTCP(0, RemotingServerFactory(traffic, 120), interface="127.0.0.1")
        self.addCleanup(server.stopListening)
        broker = make_broker(self.options(namesrv_addr=f"127.0.0.1:{server.getHost().port}", **more), clock)
        broker.startService()
        self.addCleanup(broker.stopService)
        await broker.started
        self.assertEqual(len(asked), 1)
        return asked

    async def test_a_broker_registers_each_30_seconds(self) -> None:
        clock = VirtualTime()
        asked = await self.registrations(clock)
        clock.advance(29)
        await deferLater(reactor, 0.05)
        self.assertEqual(len(asked), 1)
        for expected in (2, 3):
            clock.advance(30)
            await self.until(lambda: len(asked) == expected)  # noqa: B023

    async def test_a_broker_registers_two_seconds_after_its_connection_ended(self) -> None:
        clock = VirtualTime()
        asked = await self.registrations(clock)
        self.channel.transport.abortConnection()
        await deferLater(reactor, 0.05)
        clock.advance(UNKNOWN_SECONDS)
        await self.until(lambda: len(asked) == 2)

    async def test_a_period_below_10_seconds_is_10(self) -> None:
        clock = VirtualTime()
        asked = await self.registrations(clock, register_name_server_period=5)
        clock.advance(9)
        await deferLater(reactor, 0.05)
        self.assertEqual(len(asked), 1)
        clock.advance(1)
        await self.until(lambda: len(asked) == 2)
