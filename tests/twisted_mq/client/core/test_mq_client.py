"""Parts that members share: heartbeats, updated routes, the client's id and end."""

from __future__ import annotations

import random

from tests.support.client_case import ClientCase
from twisted_mq.client import ClientOptions, Message, MQClient, Producer, ProducerOptions, SendFailed
from twisted_mq.client.core.client_id import client_id, local_ip, unique_instance_name
from twisted_mq.client.core.errors import ClientOptionIllegal
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.layouts.message_id import decode_unique_key


class Shared(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.a = self.cluster.add_broker("broker-a", {"T": 1})
        self.client = MQClient(self.clock, rng=random.Random(1), instance_name="77#1", **self.client_arguments())
        self.producer = Producer(self.clock, "g", client=self.client)
        self.run_to_end(self.producer.start())
        self.run_to_end(self.producer.send(Message("T", b"x")))

    def test_client_id_is_apaches_form(self) -> None:
        self.assertEqual(self.client.client_id, "10.9.9.9@77#1")
        self.assertEqual(self.a.heartbeats[0].client_id, "10.9.9.9@77#1")

    def test_unique_keys_carry_the_clients_address_and_time(self) -> None:
        key = decode_unique_key(self.client.unique_key(), self.client.now_ms() + 1)
        self.assertEqual((key.ip, key.born_ms), ("10.9.9.9", 1_795_217_000_000))

    def test_new_broker_hears_of_the_client_at_once_and_then_every_thirty_seconds(self) -> None:
        self.assertEqual(len(self.a.heartbeats), 1)
        self.advance(29.5, step=0.5)
        self.assertEqual(len(self.a.heartbeats), 1)
        self.advance(1)
        self.assertEqual(len(self.a.heartbeats), 2)

    def test_broker_that_joins_is_greeted_with_the_next_route(self) -> None:
        b = self.cluster.add_broker("broker-b", {"T": 1})
        self.advance(30, step=1)
        self.assertEqual([one.group_name for one in b.heartbeats[0].producer_data_set], ["g"])

    def test_broker_that_left_every_route_gets_no_heartbeat(self) -> None:
        del self.cluster.routes["T"]
        self.cluster.add_broker("broker-b", {"T": 1})
        self.advance(31, step=1)
        count = len(self.a.heartbeats)
        self.advance(30, step=1)
        self.assertEqual(len(self.a.heartbeats), count)

    def test_routes_are_asked_every_thirty_seconds(self) -> None:
        name_server = self.cluster.name_servers[0]
        self.assertEqual(len(name_server.asked), 1)
        self.advance(60, step=1)
        self.assertEqual(len(name_server.asked), 3)

    def test_trouble_of_a_periodic_task_does_not_end_it(self) -> None:
        self.a.refuse[RequestCode.HEART_BEAT] = BrokerError(ResponseCode.SYSTEM_BUSY, "busy")
        self.cluster.network.close("10.0.0.1:9876")
        self.advance(31, step=1)
        self.a.refuse.clear()
        self.advance(30, step=1)
        self.assertEqual(len(self.a.heartbeats), 2)

    def test_last_member_closes_connections_and_timers(self) -> None:
        self.run_to_end(self.producer.stop())
        self.assertEqual((list(self.a.factory.channels), list(self.cluster.name_servers[0].factory.channels)), ([], []))
        self.assert_no_timers()


class Made(ClientCase):
    def test_bad_addresses_are_refused(self) -> None:
        self.assertRaises(ClientOptionIllegal, MQClient, self.clock, "no port")
        self.assertRaises(ClientOptionIllegal, MQClient, self.clock, [])

    def test_ids_of_two_clients_differ_in_one_process(self) -> None:
        self.assertNotEqual(unique_instance_name(), unique_instance_name())
        self.assertEqual(client_id("1.2.3.4", "5#6"), "1.2.3.4@5#6")
        self.assertEqual(len(local_ip().split(".")), 4)


class Connecting(ClientCase):
    def test_broker_that_refuses_connections_is_tried_less_and_less_often_and_found_when_it_is_back(self) -> None:
        broker = self.cluster.add_broker("broker-a", {"T": 1})
        options = ProducerOptions(retry_times=0)
        producer = Producer(self.clock, "g", options=options, **self.client_arguments(), rng=random.Random(1))
        self.run_to_end(producer.start())
        self.cluster.kill("broker-a")
        attempts = self.cluster.network.attempts
        for _ in range(100):
            self.run_to_failure(producer.send(Message("T", b"x")), SendFailed)
            self.advance(0.1, step=0.1)
        tried = attempts.count(broker.address)
        self.assertTrue(20 <= tried <= 35, tried)
        errors = [self.run_to_failure(producer.send(Message("T", b"x")), SendFailed) for _ in range(2)]
        self.assertRegex(str(errors[1]), r"refused.* \(tried \d+ times, retry in \d\.\d s\)")
        self.cluster.network.listen(broker.address, broker.factory)
        self.advance(0.6, step=0.1)
        self.run_to_end(producer.send(Message("T", b"x")))

    def test_unit_is_part_of_the_clients_id(self) -> None:
        options = ClientOptions(unit_name="u1")
        client = MQClient(self.clock, instance_name="77#1", options=options, **self.client_arguments())
        self.assertEqual(client.client_id, "10.9.9.9@77#1@u1")
