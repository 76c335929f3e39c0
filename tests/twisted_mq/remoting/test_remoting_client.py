"""The calling side: one connection an address, shared attempts, failures, closing."""

from __future__ import annotations

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.remoting import MemoryNetwork, recorder, settle
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient, split_address
from twisted_mq.remoting.errors import RemotingConnectError, RemotingSendError, RemotingTimeoutError
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import Traffic

SERVER = "127.0.0.1:9876"
ECHO, SILENT, ASK_BACK, CLOSE = 10, 11, 12, 13


class ClientCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.network = MemoryNetwork(self.clock)
        self.one_way: list[bytes] = []
        self.asked_back: list[defer.Deferred[RemotingCommand]] = []
        self.factory = RemotingServerFactory(
            Traffic(
                {
                    ECHO: self._echo,
                    SILENT: lambda channel, command: None,
                    ASK_BACK: self._ask_back,
                    CLOSE: lambda channel, command: channel.close(),
                },
                self.clock,
            )
        )
        self.network.listen(SERVER, self.factory)
        self.lost: list[tuple[str]]
        self.lost, on_lost = recorder()
        self.made, on_made = recorder()
        self.client = RemotingClient(
            self.clock, connect=self.network.connect, channel_made=on_made, channel_lost=on_lost
        )

    def _echo(self, channel, command):  # type: ignore[no-untyped-def]
        self.one_way.append(command.body)
        return command.answer(body=command.body)

    def _ask_back(self, channel, command):  # type: ignore[no-untyped-def]
        self.asked_back.append(channel.send_request(RemotingCommand(40, body=b"server asks"), 3))
        return command.answer()

    def invoke(self, code: int = ECHO, body: bytes = b"", seconds: float = 3.0) -> defer.Deferred[RemotingCommand]:
        answer = self.client.invoke(SERVER, RemotingCommand(code, body=body), seconds)
        settle(self.clock)
        return answer


class Calls(ClientCase):
    def test_requests_to_one_address_share_one_connection(self) -> None:
        for body in (b"a", b"b"):
            self.assertEqual(self.successResultOf(self.invoke(body=body)).body, body)
        self.assertEqual(self.network.attempts, [SERVER])

    def test_requests_of_the_same_moment_share_one_attempt(self) -> None:
        self.network.silent.add(SERVER)
        waiting = [self.client.invoke(SERVER, RemotingCommand(ECHO)) for _ in range(3)]
        self.assertEqual(self.network.attempts, [SERVER])
        self.client.close()
        for one in waiting:
            self.failureResultOf(one, RemotingConnectError)

    def test_connection_is_made_again_after_it_was_lost(self) -> None:
        self.failureResultOf(self.invoke(CLOSE), RemotingSendError)
        self.assertEqual((self.made, self.lost), ([(SERVER,)], [(SERVER,)]))
        self.assertEqual(self.successResultOf(self.invoke(body=b"again")).body, b"again")
        self.assertEqual(self.network.attempts, [SERVER, SERVER])

    def test_one_way_reaches_the_server(self) -> None:
        self.successResultOf(self.client.invoke_one_way(SERVER, RemotingCommand(ECHO, body=b"one-way")))
        settle(self.clock)
        self.assertEqual(self.one_way, [b"one-way"])

    def test_server_asks_the_client_on_the_clients_connection(self) -> None:
        self.client.processors[40] = lambda channel, command: command.answer(body=b"client answers " + command.body)
        self.successResultOf(self.invoke(ASK_BACK))
        self.assertEqual(self.successResultOf(self.asked_back[0]).body, b"client answers server asks")

    def test_no_answer_in_time_fails(self) -> None:
        answer = self.invoke(SILENT, seconds=2)
        self.clock.advance(2)
        self.failureResultOf(answer, RemotingTimeoutError)

    def test_time_is_for_connecting_and_answering_together(self) -> None:
        self.network.silent.add(SERVER)
        answer = self.invoke(seconds=2)
        self.clock.advance(2)
        error = self.failureResultOf(answer, RemotingTimeoutError).value
        self.assertEqual(str(error), f"no connection to {SERVER} within 2 s")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_disconnect_breaks_the_connection_and_unknown_addresses_do_not_matter(self) -> None:
        answer = self.invoke(SILENT)
        self.client.disconnect(SERVER)
        self.client.disconnect("127.0.0.1:1")
        settle(self.clock)
        self.failureResultOf(answer, RemotingSendError)


class Failures(ClientCase):
    def test_refused_connection_names_the_address(self) -> None:
        error = self.failureResultOf(
            self.client.invoke("127.0.0.1:1", RemotingCommand(ECHO)), RemotingConnectError
        ).value
        self.assertIn("connect to 127.0.0.1:1 failed: Connection was refused", str(error))

    def test_address_of_a_wrong_form_is_refused_without_an_attempt(self) -> None:
        for address in ("nonsense", ":9876", "host:port", ""):
            error = self.failureResultOf(self.client.invoke(address, RemotingCommand(ECHO)), RemotingConnectError).value
            self.assertEqual(str(error), f"{address!r} is not an address of the form host:port")
        self.assertEqual(self.network.attempts, [])

    def test_failed_attempt_does_not_stand_in_the_way_of_the_next(self) -> None:
        self.network.close(SERVER)
        self.failureResultOf(self.invoke(), RemotingConnectError)
        self.network.listen(SERVER, self.factory)
        self.successResultOf(self.invoke())


class Closing(ClientCase):
    def test_close_fails_what_waits_and_fires_when_the_connection_is_gone(self) -> None:
        answer = self.invoke(SILENT)
        closed = self.client.close()
        self.assertNoResult(closed)
        settle(self.clock)
        self.successResultOf(closed)
        self.failureResultOf(answer, RemotingSendError)
        self.assertEqual(list(self.factory.channels), [])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_close_twice_is_harmless(self) -> None:
        self.invoke()
        first, second = self.client.close(), self.client.close()
        settle(self.clock)
        self.successResultOf(first)
        self.successResultOf(second)
        self.successResultOf(self.client.close())
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_closed_client_makes_no_connection(self) -> None:
        self.successResultOf(self.client.close())
        error = self.failureResultOf(self.invoke(), RemotingConnectError).value
        self.assertEqual(str(error), f"connect to {SERVER} failed: this client is closed")

    def test_peer_that_does_not_let_go_is_cut_off(self) -> None:
        self.successResultOf(self.invoke())
        channel = self.successResultOf(self.client.channel(SERVER))
        channel.transport.loseConnection = lambda: None  # what is written never leaves
        closed = self.client.close(abort_after_seconds=1)
        self.assertNoResult(closed)
        del channel.transport.loseConnection
        self.clock.advance(1)
        settle(self.clock)
        self.successResultOf(closed)
        self.assertTrue(channel.transport.aborted)


class Addresses(ClientCase):
    def test_host_and_port_of_an_address(self) -> None:
        self.assertEqual(split_address("broker.example:10911"), ("broker.example", 10911))
        self.assertEqual(split_address("[::1]:10911"), ("::1", 10911))

    def test_what_is_no_address_is_refused_as_it_is_called(self) -> None:
        for port in ("", "x", "65536", "-1", "\u00b2", "9" * 5000):
            calling = self.client.invoke(f"broker:{port}", RemotingCommand(0))
            self.assertIn("is not an address", str(self.failureResultOf(calling, RemotingConnectError).value))
