"""Choice of the name server, and the error when none answers."""

from __future__ import annotations

import random
from typing import Any

from tests.support.client_case import ClientCase
from twisted_mq.client import Message, Producer
from twisted_mq.client.core.errors import ClientOptionIllegal, NameServerUnreachable
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.routing.name_servers import NameServers, parse_addresses


class Second(random.Random):
    """Begins at the second name server."""

    def randrange(self, *bounds: Any) -> int:
        return 1


def whole(answer: RemotingCommand) -> RemotingCommand:
    return answer


class Asking(ClientCase):
    name_servers = 3

    def setUp(self) -> None:
        super().setUp()
        self.cluster.add_broker("broker-a", {"T": 1})
        self.remoting = RemotingClient(self.clock, connect=self.cluster.network.connect)
        self.servers = NameServers(self.remoting, parse_addresses(self.cluster.namesrv), first=1)

    def ask(self) -> RemotingCommand:
        return self.run_to_end(self.servers.ask(RemotingCommand.request(105, {"topic": "T"}), whole))

    def asked(self) -> list[int]:
        return [len(one.asked) for one in self.cluster.name_servers]

    def test_same_server_is_asked_while_it_answers(self) -> None:
        self.ask()
        self.ask()
        self.assertEqual(self.asked(), [0, 2, 0])

    def test_next_server_is_asked_when_one_is_gone_and_stays_the_one(self) -> None:
        self.cluster.network.close("10.0.0.2:9876")
        self.assertEqual(self.ask().code, 0)
        self.assertEqual(self.ask().code, 0)
        self.assertEqual(self.asked(), [0, 0, 2])
        self.assertEqual(self.cluster.network.attempts.count("10.0.0.2:9876"), 1)

    def test_silent_server_costs_its_time_and_then_the_next_is_asked(self) -> None:
        self.cluster.name_servers[1].silent.add(105)
        answer = self.begin(self.servers.ask(RemotingCommand.request(105, {"topic": "T"}), whole))
        self.assertNoResult(answer)
        self.advance(3)
        self.assertEqual(self.successResultOf(answer).code, 0)

    def test_server_whose_answer_cannot_be_read_is_left_for_the_next(self) -> None:
        def garbage(channel: Any, request: RemotingCommand) -> RemotingCommand:
            return request.answer(body=b"<html>")

        self.cluster.name_servers[1].factory.traffic.processors[105] = garbage
        producer = Producer(self.clock, "g", rng=Second(), **self.client_arguments())
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("T", b"x")))
        for server in self.cluster.name_servers:
            server.factory.traffic.processors[105] = garbage
        error = self.run_to_failure(producer.publish_queues("U"), NameServerUnreachable)
        self.assertEqual(len(error.failures), 3)
        self.assertIn("TopicRouteData", error.failures["10.0.0.1:9876"])

    def test_when_none_answers_the_error_has_every_address_and_the_next_step(self) -> None:
        for one in self.cluster.name_servers:
            self.cluster.network.close(one.address)
        error = self.run_to_failure(self.servers.ask(RemotingCommand.request(105), whole), NameServerUnreachable)
        self.assertEqual(sorted(error.failures), ["10.0.0.1:9876", "10.0.0.2:9876", "10.0.0.3:9876"])
        self.assertIn("Connection was refused", error.failures["10.0.0.1:9876"])
        self.assertIn("mq up", str(error))


class Parsing(ClientCase):
    def test_addresses_by_semicolon_comma_or_list(self) -> None:
        for given in ("a:1; b:2;", "a:1,b:2,a:1", ["a:1", "b:2"]):
            self.assertEqual(parse_addresses(given), ("a:1", "b:2"))

    def test_wrong_addresses_are_named(self) -> None:
        self.assertIn("is empty", str(self.assertRaises(ClientOptionIllegal, parse_addresses, " ; ")))
        self.assertIn("'localhost' is not", str(self.assertRaises(ClientOptionIllegal, parse_addresses, "localhost")))
