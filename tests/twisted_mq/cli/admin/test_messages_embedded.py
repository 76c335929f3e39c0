"""Subcommands that look messages up, print and send them, against an embedded broker."""

from __future__ import annotations

import re

from twisted.internet.defer import CancelledError, Deferred

from tests.twisted_mq.cli.admin.embedded import PRODUCERS, TOPIC, AdminCase
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.sending import cluster_rt
from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.producer import Producer
from twisted_mq.client.producing.producer_options import ProducerOptions


class QueryTests(AdminCase):
    """Messages by id, key and place."""

    async def test_a_message_by_its_offset_id_and_by_its_unique_key(self) -> None:
        sent = self.sent[1]
        for message_id in (sent.offset_msg_id, sent.msg_id):
            shown = await self.shown(f"queryMsgById -t {TOPIC} -i {message_id}")
            self.assertEqual(
                shown[:8],
                [
                    f"OffsetID: {sent.offset_msg_id}",
                    f"Topic: {TOPIC}",
                    "Tags: [TagA]",
                    "Keys: [key1]",
                    "Queue ID: 1",
                    "Queue Offset: 0",
                    shown[6],
                    "Reconsume Times: 0",
                ],
            )
            self.assertEqual(shown[-1], "WARN: No Consumer")

    async def test_the_body_goes_to_a_file_that_is_named(self) -> None:
        (row,) = await self.run_json(f"queryMsgById -t {TOPIC} -i {self.sent[1].offset_msg_id} -f UTF-8")
        self.assertEqual(row["messageBody"], "body 1")
        with open(row["messageBodyPath"], "rb") as file:
            self.assertEqual(file.read(), b"body 1")

    async def test_several_ids_are_parted_by_commas(self) -> None:
        ids = ",".join(sent.offset_msg_id for sent in self.sent[:2])
        rows = await self.run_json(f"queryMsgById -t {TOPIC} -i {ids}")
        self.assertEqual([row["keys"] for row in rows], ["[key0]", "[key1]"])

    async def test_an_id_that_is_nowhere_is_an_error(self) -> None:
        nowhere = self.sent[0].offset_msg_id[:-4] + "FFF1"
        for line in (f"queryMsgById -t {TOPIC} -i {nowhere}", f"queryMsgByKey -t {TOPIC} -k nokey"):
            self.assertEqual(await self.fails(line), "CODE: 208 DESC: query message by key finished, but no message.")

    async def test_messages_of_a_key(self) -> None:
        self.assertEqual(
            await self.shown(f"queryMsgByKey -t {TOPIC} -k key5"),
            ["#Message ID #QID #Offset", f"{self.sent[5].msg_id} 1 1"],
        )

    async def test_a_message_of_a_unique_key(self) -> None:
        shown = await self.shown(f"queryMsgByUniqueKey -t {TOPIC} -i {self.sent[2].msg_id}")
        self.assertEqual(shown[:3], [f"Topic: {TOPIC}", "Tags: [TagA]", "Keys: [key2]"])

    async def test_a_message_by_its_place(self) -> None:
        (row,) = await self.run_json(f"queryMsgByOffset -t {TOPIC} -b broker-a -i 3 -o 1")
        self.assertEqual(row["keys"], "[key7]")
        self.assertEqual(await self.run_json(f"queryMsgByOffset -t {TOPIC} -b broker-a -i 3 -o 99"), [])
        refused = await self.fails(f"queryMsgByOffset -t {TOPIC} -b broker-z -i 3 -o 1")
        self.assertEqual(refused, "no broker 'broker-z' has this topic; brokers that have it: broker-a")

    async def test_a_message_is_sent_once_more(self) -> None:
        shown = await self.shown(f"queryMsgById -t {TOPIC} -i {self.sent[0].offset_msg_id} -s true")
        self.assertEqual(shown[0], f"prepare resend msg. originalMsgId={self.sent[0].offset_msg_id}")
        self.assertRegex(shown[1], rf"SendResult \[sendStatus=SEND_OK, msgId={self.sent[0].msg_id}, ")

    async def test_what_became_of_a_message_by_its_traces(self) -> None:
        options = ProducerOptions(message_trace=True)
        producer = Producer(self.producer._clock, "traced", self.cluster.name_server, options=options)
        await producer.start()
        sent = await producer.send(Message(TOPIC, b"traced"))
        await producer.stop()
        shown = await self.shown(f"queryMsgTraceById -i {sent.msg_id}")
        self.assertEqual(shown[0], "#Type #ProducerGroup #ClientHost #SendTime #CostTimes #Status")
        self.assertRegex(shown[1], r"Pub traced 127\.0\.0\.1 \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+ms success")


class PrintTests(AdminCase):
    """Messages of queues."""

    async def test_all_messages_of_a_topic(self) -> None:
        shown = await self.shown(f"printMsg -t {TOPIC} -d true")
        queues = [f"MessageQueue [topic={TOPIC}, brokerName=broker-a, queueId={queue}]" for queue in range(4)]
        self.assertEqual(shown[::4], [f"minOffset=0, maxOffset=2, {queue}" for queue in queues])
        self.assertEqual(shown[3::4], ["-" * 56] * 4)
        self.assertRegex(shown[1], rf"MSGID: {self.sent[0].msg_id} MessageExt \[brokerName=broker-a, queueId=0, .*")
        self.assertTrue(shown[1].endswith(", transactionId='null'}] BODY: body 0"), shown[1])

    async def test_only_messages_of_a_tag(self) -> None:
        rows = await self.run_json(f"printMsg -t {TOPIC} -s TagB")
        self.assertEqual(rows, [])

    async def test_bodies_may_stay_unprinted(self) -> None:
        rows = await self.run_json(f"printMsg -t {TOPIC} -d false")
        self.assertEqual([row["body"] for row in rows], [None] * 8)

    async def test_messages_of_a_time(self) -> None:
        self.assertEqual(await self.run_json(f"printMsg -t {TOPIC} -b 2030-01-01#00:00:00:000"), [])
        refused = await self.fails(f"printMsg -t {TOPIC} -b yesterday")
        self.assertEqual(refused, "Option -b must be ms since 1970 or yyyy-MM-dd#HH:mm:ss:SSS, got 'yesterday'")

    async def test_one_queue_with_its_tags_counted(self) -> None:
        rows = await self.run_json(f"printMsgByQueue -t {TOPIC} -a broker-a -i 2 -p true -d true -f true")
        self.assertEqual([row["body"] for row in rows[:2]], ["body 2", "body 6"])
        self.assertEqual(rows[2:], [{"tag": "TagA", "count": 2}])
        self.assertEqual(
            await self.shown(f"printMsgByQueue -t {TOPIC} -a broker-a -i 2 -f true"), ["Tag: TagA Count: 2"]
        )

    async def test_a_message_from_an_offset_on(self) -> None:
        shown = await self.shown(f"consumeMessage -t {TOPIC} -b broker-a -i 0 -o 1 -c 1")
        self.assertEqual((shown[0], len(shown)), ("Consume ok", 3))
        self.assertTrue(shown[1].endswith("BODY: body 4"), shown[1])
        self.assertRegex(shown[2], r"MessageQueue \[.*\] print msg finished\. status=NO_NEW_MSG, offset=2")

    async def test_options_that_need_each_other(self) -> None:
        for line, text in (
            ("-i 0", "Please set the brokerName before queueId!"),
            ("-o 0", "Please set queueId before offset!"),
            ("-c 0", "Please input a positive messageNumber!"),
            ("-s 2100-01-01#00:00:00:000", "Please set the beginTimestamp before now!"),
        ):
            self.assertEqual(await self.fails(f"consumeMessage -t {TOPIC} {line}"), text)


class SendTests(AdminCase):
    """Messages sent by the tool."""

    async def test_one_message(self) -> None:
        shown = await self.shown(f"sendMessage -t {TOPIC} -p text -k key -c TagB -b broker-a -i 2")
        self.assertEqual(shown[0], "#Broker Name #QID #Send Result #MsgId")
        self.assertRegex(shown[1], r"broker-a 2 SEND_OK [0-9A-F]{32}")
        (row,) = await self.run_json(f"queryMsgByOffset -t {TOPIC} -b broker-a -i 2 -o 2 -f UTF-8")
        self.assertEqual((row["tags"], row["keys"], row["messageBody"]), ("[TagB]", "[key]", "text"))
        refused = await self.fails(f"sendMessage -t {TOPIC} -p text -i 2")
        self.assertEqual(refused, "Broker name must be set if the queue is chosen!")
        self.assertIn("illegal", await self.fails("sendMessage -t no/topic -p text"))

    async def test_how_long_sends_take(self) -> None:
        rows = await self.run_json(f"checkMsgSendRT -t {TOPIC} -a 3 -s 10")
        self.assertEqual([(row["broker"], row["queueId"], row["sendResult"]) for row in rows[:3]],
                         [("broker-a", queue, True) for queue in range(3)])  # fmt: skip
        self.assertEqual([*rows[3]], ["averageRtMs"])
        shown = await self.shown("sendMsgStatus -b broker-a -c 2")
        self.assertEqual([bool(re.match(r"rt=\d+ms, SendResult=SendResult \[sendStatus=SEND_OK, ", line)) for line in shown],
                         [True, True])  # fmt: skip

    async def test_a_round_over_all_brokers_of_a_cluster(self) -> None:
        lines: list[str] = []
        line = CommandLine({"a": "2", "i": "3600", "s": "10"})
        running = Deferred.fromCoroutine(cluster_rt(self.context(lines, as_json=False), line))
        await self.wait(lambda: len(lines) == 2)
        running.cancel()
        await self.assertFailure(running, CancelledError)
        self.assertEqual(
            lines[0].split(), ["#Cluster", "Name", "#Broker", "Name", "#RT", "#successCount", "#failCount"]
        )
        self.assertEqual((lines[1].split()[:2], lines[1].split()[3:]), (["DefaultCluster", "broker-a"], ["2", "0"]))

    async def test_producers_are_listed(self) -> None:
        (row,) = await self.run_json(f"producerConnection -g {PRODUCERS} -t {TOPIC}")
        self.assertEqual((row["language"], row["version"]), ("PYTHON", "V5_3_3"))
        (told,) = [one for one in await self.run_json("producer -b BROKER") if one["group"] == PRODUCERS]
        self.assertEqual(told["clientId"], row["clientId"])
        self.assertIn("CODE: 1 ", await self.fails(f"producerConnection -g nosuch -t {TOPIC}"))
