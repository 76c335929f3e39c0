"""`mq order` with real brokers: what it makes, what it shows, what it refuses."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer
from twisted.trial.unittest import TestCase

from tests.support.ordered_cluster import TOPIC, OrderedClusterCase
from twisted_mq.admin.ordered_topics import read_state
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.ordered import declare, groups, repair
from twisted_mq.cli.ordered.session import SessionSettings, coordinator_address, settings_of
from twisted_mq.cli.ordered.state import group_row, state_json, unit_row
from twisted_mq.client import OrderedTopicUnknown
from twisted_mq.coordination.interfaces import Create, Delete, Put
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.documents import UnreachedHead, encode_lists, encode_unreached
from twisted_mq.ordering.lists import OrderedTopic, StoreMark, Term
from twisted_mq.ordering.paths import consumer_group_path, producers_path, topic_path, unit_path, unreached_path
from twisted_mq.protocol.errors import BrokerError


class Commands(OrderedClusterCase):
    async def refused(self, work: Any) -> str:
        with self.assertRaises(CliError) as caught:
            await work
        return str(caught.exception)

    async def test_declared_shown_handed_over_retired_and_deleted(self) -> None:
        await self.started()
        await self.declared(2)
        await defer.gatherResults(self.send(await self.producer(), 0, 5))
        state = await read_state(self.session, TOPIC)
        first = state.units[0]
        epoch = first.lists.epoch
        row = ("0", epoch, "broker-a", "broker-a broker-b", f"broker-a:{epoch} (5)")
        self.assertEqual(unit_row(state, first)[:5], row)
        self.assertEqual([group_row(group)[3] for group in state.groups.values()], ["ok", "ok"])
        shown: Any = state_json(state)
        self.assertEqual(shown["units"][0]["consume"], [{"group": "broker-a", "epoch": epoch, "backlog": 5}])
        self.assertEqual(shown["units"][0]["producers"][0]["group"], "billing")
        await declare.create(self.session, OrderedTopic(TOPIC, 2, ("broker-a", "broker-b")))  # harmless

        moved = await groups.move(self.session, TOPIC, "0", "broker-b")
        self.assertEqual((moved.head, moved.epoch), ("broker-b", epoch + 1))
        state = await read_state(self.session, TOPIC)
        self.assertEqual(
            state.blocks(state.units[0]), ["broker-a waits for its first consumer group; start a consumer"]
        )
        said = await self.refused(groups.move(self.session, TOPIC, "0", "broker-a"))
        self.assertIn("not moved: broker-a: its messages are not consumed yet", said)
        await self.consumer()
        await self.consumed(5)
        await self.state_with(lambda state: state.units[0].lists.send == ("broker-b", "broker-a"))

        await groups.wish(self.session, "broker-b", retired=True)
        self.assertEqual(await groups.left_send_lists(self.session, "broker-b", 20), [])
        state = await self.state_with(lambda state: state.units[0].lists.head == "broker-a")
        self.assertEqual(
            state.groups["broker-b"].obstacle(), "broker-b: it is retired: mq order restore reactivates it"
        )
        await groups.wish(self.session, "broker-b", retired=False)
        await self.state_with(lambda state: "broker-b" in state.units[0].lists.send)

        await declare.delete(self.session, TOPIC)
        with self.assertRaises(OrderedTopicUnknown):
            await read_state(self.session, TOPIC)
        self.assertNotIn(TOPIC, await self.session.admin.topic_list())

    async def test_a_second_declaration_adds_groups(self) -> None:
        await self.started()
        await declare.create(self.session, OrderedTopic(TOPIC, 1, ("broker-a",)))
        await self.state_with(lambda state: state.units[0].lists.send == ("broker-a",))
        await declare.create(self.session, OrderedTopic(TOPIC, 1, ("broker-a", "broker-b")))
        state = await self.state_with(lambda state: state.units[0].lists.send == ("broker-a", "broker-b"))
        self.assertEqual((state.units[0].lists.epoch, list(state.groups)), (1, ["broker-a", "broker-b"]))

    async def test_what_can_not_be_is_refused_with_what_to_do(self) -> None:
        await self.started()
        self.assertEqual(await coordinator_address(self.session.admin), self.cluster.coordinator_address)
        unknown = OrderedTopic(TOPIC, 1, ("broker-a", "broker-x"))
        self.assertEqual(
            await self.refused(declare.create(self.session, unknown)),
            "no broker group 'broker-x' at this name server; it knows: broker-a, broker-b",
        )
        await self.declared()
        said = await self.refused(declare.create(self.session, OrderedTopic(TOPIC, 2, ("broker-a",))))
        self.assertEqual(
            said,
            "topic Orders is already declared: 1 queues on broker-a,broker-b; to add groups, name these and the new ones; `mq "
            "order delete Orders` deletes the topic",
        )
        said = await self.refused(groups.move(self.session, TOPIC, "1", "broker-b"))
        self.assertEqual(said, "topic Orders has no queue '1' that moves by itself; it has 0 to 0")
        said = await self.refused(groups.move(self.session, TOPIC, "0", "broker-x"))
        self.assertEqual(said, "group 'broker-x' is not one of topic Orders; it has broker-a, broker-b")
        said = await self.refused(groups.wish(self.session, "broker-x", retired=True))
        self.assertIn("they have: broker-a, broker-b", said)
        with self.assertRaises(OrderedTopicUnknown):
            await read_state(self.session, "Plain")
        await self.session.coordinator.commit([Put(unit_path(TOPIC, "0"), b'{"epoch":1}', None)])
        state = await read_state(self.session, TOPIC)
        self.assertEqual(
            state.blocks(state.units[0]),
            ["blocked: /topics/Orders/0: send: is missing, it must be a list of broker names, got null; "
             "correct the node by hand"],
        )  # fmt: skip
        said = await self.refused(groups.move(self.session, TOPIC, "0", "broker-b"))
        self.assertIn("topic Orders queue 0 is blocked", said)
        await self.cluster.stop_broker("broker-b", 1)
        alone = OrderedTopic("Other", 1, ("broker-b",))
        self.assertIn(
            "group broker-b has no slaves registered", await self.refused(declare.create(self.session, alone))
        )

    async def test_repair_waits_for_each_group_and_brings_back_what_the_coordinator_forgot(self) -> None:
        await self.started()
        await self.declared()
        consumer = await self.consumer()
        await defer.gatherResults(self.send(await self.producer(), 0, 5))
        await self.consumed(5)
        await consumer.stop()
        for broker_id in (0, 1):
            await self.cluster.stop_broker("broker-b", broker_id)
        coordinator = self.session.coordinator
        gone = StoreMark("broker-a", 40, 60)
        older = attrs.evolve((await read_state(self.session, TOPIC)).units[0].lists, stores=(gone,))
        node = consumer_group_path("audit", TOPIC, "0")
        await coordinator.commit([Put(unit_path(TOPIC, "0"), encode_lists(older), None), Delete(node)])

        state = await read_state(self.session, TOPIC)
        (blocked,) = state.blocks(state.units[0])
        self.assertIn("mq order repair Orders shows and writes", blocked)
        said = await self.refused(repair.find_repairs(self.session, TOPIC, ()))
        self.assertIn("queue 0: the contents of the stores of broker-b are not known", said)
        (found,) = await repair.find_repairs(self.session, TOPIC, ("broker-b",))
        self.assertEqual((found.after.epoch, found.after.consume), (41, (Term("broker-a", 40),)))
        await repair.write_repairs(self.session, TOPIC, [found])
        said = await self.refused(repair.write_repairs(self.session, TOPIC, [found]))
        self.assertEqual(said, "queue 0: its lists have changed; run the command again")
        self.assertEqual(await repair.find_repairs(self.session, TOPIC, ()), [])
        self.assertIsNotNone(await coordinator.read(node), "its backlog counts again")
        leader = await coordinator.commit([Create(f"{producers_path(TOPIC, '0')}/n-", sequential=True)])
        self.assertGreater(int(leader[0][-10:]), 60)

    async def test_active_consumer_without_a_connection_to_a_broker_is_told(self) -> None:
        await self.started()
        await self.declared()
        await defer.gatherResults(self.send(await self.producer(), 0, 5))
        path = consumer_group_path("audit", TOPIC, "0")
        await make_paths(self.session.coordinator, [path])
        await self.session.coordinator.commit(
            [Create(f"{path}/n-ffff-ghost-", b"10.0.0.9@ghost", ephemeral=True, sequential=True)]
        )
        state = await read_state(self.session, TOPIC)
        self.assertEqual((state.units[0].waiting, state.units[0].cut_off), ({"audit": 5}, {"audit": "10.0.0.9@ghost"}))
        await self.consumer()  # it stands behind the other, and is connected
        state = await read_state(self.session, TOPIC)
        self.assertEqual(state.units[0].cut_off, {"audit": "10.0.0.9@ghost"})

    async def test_head_that_its_producer_cannot_reach_is_told(self) -> None:
        await self.started()
        await self.declared()
        await self.cluster.stop_broker("broker-b", 1)
        state = await self.state_with(lambda state: state.units[0].lists.send == ("broker-a",))
        path, epoch = unreached_path(TOPIC, "0"), state.units[0].lists.epoch
        await make_paths(self.session.coordinator, [path])
        for client, of_epoch, told in (("10.0.0.9@1", epoch, "10.0.0.9@1"), ("10.0.0.9@1", epoch + 1, None)):
            report = encode_unreached(UnreachedHead("broker-a", of_epoch, client))
            await self.session.coordinator.commit([Put(path, report, None)])
            state = await read_state(self.session, TOPIC)
            self.assertEqual(state.units[0].unreached, told)

    async def test_slaves_that_are_not_read_are_refused(self) -> None:
        await self.started(broker_options={"slave_read_enable": False})
        said = await self.refused(declare.create(self.session, OrderedTopic(TOPIC, 1, ("broker-a",))))
        self.assertEqual(
            said,
            "broker 1 of broker-a has no slaveReadEnable=true; without it consumers stop when the master is lost",
        )

    async def test_messages_of_an_earlier_declaration_are_not_taken_for_new_ones(self) -> None:
        await self.started()
        await self.declared()
        await defer.gatherResults(self.send(await self.producer(), 0, 1))
        paths = [unit_path(TOPIC, "0"), topic_path(TOPIC)]
        await self.session.coordinator.commit([Delete(path) for path in paths])  # as another ZooKeeper would have it
        said = await self.refused(declare.create(self.session, OrderedTopic(TOPIC, 1, ("broker-b", "broker-a"))))
        self.assertIn("group broker-a has older messages of topic Orders; use another name, or delete", said)

    async def test_plain_topic_does_not_become_ordered(self) -> None:
        await self.started()
        plain = OrderedTopic("BenchmarkTest", 1, ("broker-a", "broker-b"))
        with self.assertRaises(BrokerError):
            await declare.create(self.session, plain)
        with self.assertRaises(OrderedTopicUnknown):
            await read_state(self.session, "BenchmarkTest")


class Arguments(TestCase):
    def refused(self, *arguments: Any, **more: Any) -> str:
        with self.assertRaises(CliError) as caught:
            declare.declaration(*arguments, together=False)
        return str(caught.exception)

    def test_declarations_without_sense_name_the_argument(self) -> None:
        self.assertIn("--groups ',' must name each broker group once", self.refused("T", 1, ","))
        self.assertIn("each broker group once", self.refused("T", 1, "a,a"))
        self.assertIn("topic 'a b'", self.refused("a b", 1, "a"))
        self.assertIn("at most 65535 ordered queues", self.refused("T", 65536, "a"))

    def test_coordinators_that_can_not_be_reached_say_what_to_do(self) -> None:
        for address, text in (
            ("memory", "`mq up --ordered` prints an address for --coordinator"),
            ("host:port", "'host:port' is not HOST:PORT"),
        ):
            with self.assertRaises(CliError) as caught:
                settings_of(address, SessionSettings(""))
            self.assertIn(text, str(caught.exception))
        with self.assertRaises(CliError) as caught:
            settings_of("zk:2181", SessionSettings("", auth="secret"))
        self.assertNotIn("secret", str(caught.exception))
