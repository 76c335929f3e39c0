"""Subcommands of consumer groups against an embedded broker: what they print, and what they change."""

from __future__ import annotations

import json
import os
import re

from tests.twisted_mq.cli.admin.embedded import GROUP, TOPIC, AdminCase
from twisted_mq.cli.admin.monitoring import monitor_once
from twisted_mq.cli.admin.offsets import RESET, reset_offline
from twisted_mq.protocol.codes import ResponseCode

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
OTHER = "spare"


class MemberTests(AdminCase):
    """A group with a member that has taken all messages."""

    async def setUp(self) -> None:
        await super().setUp()
        self.consumer = await self.consume_all()
        self.client_id = self.consumer.client.client_id

    async def test_progress_shows_each_queue_and_the_sums(self) -> None:
        shown = [re.sub(TIME, "TIME", line) for line in await self.shown(f"consumerProgress -g {GROUP}")]
        self.assertEqual(
            shown,
            [
                "#Topic #Broker Name #QID #Broker Offset #Consumer Offset #Diff #Inflight #LastTime",
                *(f"{TOPIC} broker-a {queue} 2 2 0 0 TIME" for queue in range(4)),
                "",
                "Consume TPS: 0.00",
                "Consume Diff Total: 0",
                "Consume Inflight Total: 0",
            ],
        )

    async def test_progress_names_who_has_a_queue(self) -> None:
        rows = await self.run_json(f"consumerProgress -g {GROUP} -t {TOPIC} -s true")
        self.assertEqual([row.get("clientIp") for row in rows[:4]], [self.client_id.split("@")[0]] * 4)
        self.assertEqual(rows[4:], [{"consumeTps": 0.0}, {"diffTotal": 0}, {"inflightTotal": 0}])

    async def test_progress_of_all_groups(self) -> None:
        self.assertEqual(
            await self.run_json("consumerProgress"),
            [
                {
                    "group": GROUP,
                    "count": 1,
                    "version": "V5_3_3",
                    "type": "PUSH",
                    "model": "CLUSTERING",
                    "tps": 0,
                    "diffTotal": 0,
                }
            ],
        )

    async def test_connection_shows_members_and_subscriptions(self) -> None:
        shown = await self.shown(f"consumerConnection -g {GROUP}")
        self.assertEqual(shown[0], "#ClientId #ClientAddr #Language #Version")
        self.assertRegex(shown[1], rf"{re.escape(self.client_id)} 127\.0\.0\.1:\d+ PYTHON V5_3_3")
        self.assertEqual(shown[2:5], ["", "Below is subscription:", "#Topic #SubExpression"])
        self.assertEqual(sorted(shown[5:7]), [f"%RETRY%{GROUP} *", f"{TOPIC} *"])
        self.assertEqual(
            shown[7:],
            [
                "",
                "ConsumeType: CONSUME_PASSIVELY",
                "MessageModel: CLUSTERING",
                "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET",
            ],
        )

    async def test_status_of_a_member_is_its_whole_report(self) -> None:
        shown = await self.shown(f"consumerStatus -g {GROUP} -i {self.client_id}")
        heads = [line for line in shown if line.startswith(("#Consumer ", "#User"))]
        self.assertEqual(
            heads,
            [
                "#Consumer Properties#",
                "#Consumer Subscription#",
                "#Consumer Offset#",
                "#Consumer MQ Detail#",
                "#Consumer Pop Detail#",
                "#Consumer RT&TPS#",
                "#User Consume Info#",
            ],
        )
        self.assertIn(f"{TOPIC} broker-a 0 2", shown)

    async def test_status_of_all_members_goes_to_files(self) -> None:
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        first, *verdict = await self.run_json(f"consumerStatus -g {GROUP}")
        self.assertEqual((first["clientId"], verdict), (self.client_id, [{"sameSubscription": True}]))
        with open(first["file"]) as file:
            self.assertEqual(file.readline(), "#Consumer Properties#\n")

    async def test_a_message_is_tracked_as_consumed(self) -> None:
        (row,) = await self.run_json(f"queryMsgById -t {TOPIC} -i {self.sent[0].offset_msg_id}")
        self.assertEqual(row["tracks"], [{"consumerGroup": GROUP, "trackType": "CONSUMED"}])

    async def test_a_message_is_handed_to_one_member(self) -> None:
        line = f"queryMsgById -t {TOPIC} -i {self.sent[0].offset_msg_id} -g {GROUP} -d {self.client_id}"
        (text,) = await self.shown(line)
        self.assertRegex(
            text,
            r"ConsumeMessageDirectlyResult \[order=false, autoCommit=true, consumeResult=CR_SUCCESS, remark=null, "
            r"spentTimeMills=\d+\]",
        )

    async def test_a_preview_of_a_reset_counts_and_changes_nothing(self) -> None:
        shown = await self.shown(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0 --dry-run")
        self.assertEqual(
            [re.sub(TIME, "TIME", line) for line in shown],
            [
                "#Broker Name #QID #Consumer Offset #New Offset #Again #Skipped #Stored",
                *(f"broker-a {queue} 2 0 2 0 TIME" for queue in range(4)),
                "",
                "8 messages would come again, 0 would be skipped. Nothing was changed.",
            ],
        )
        self.assertEqual((await self.run_json(f"consumerProgress -g {GROUP}"))[-2], {"diffTotal": 0})

    async def test_a_preview_of_skipping_says_where_the_end_is(self) -> None:
        await self.run_line(f"cloneGroupOffset -s {GROUP} -d {OTHER} -t {TOPIC}")
        await self.send(8)
        rows = await self.run_json(f"skipAccumulatedMessage -g {OTHER} -t {TOPIC} --dry-run")
        self.assertEqual([(row["consumerOffset"], row["newOffset"], row["skipped"]) for row in rows],
                         [(2, 3, 1), (2, 2, 0), (2, 2, 0), (2, 2, 0)])  # fmt: skip

    async def test_a_reset_with_members_goes_through_the_broker(self) -> None:
        shown = await self.shown(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0")
        self.assertEqual(
            shown,
            [
                f"start reset consumer offset by specified, group[{GROUP}], topic[{TOPIC}], force[true], "
                "timestamp(string)[0], timestamp(long)[0]",
                "#brokerName #queueId #offset",
                *(f"broker-a {queue} 0" for queue in range(4)),
            ],
        )

    async def test_skipping_with_members_names_the_ends(self) -> None:
        shown = await self.shown(f"skipAccumulatedMessage -g {GROUP} -t {TOPIC}")
        self.assertEqual(shown, ["#brokerName #queueId #offset", *(f"broker-a {queue} 2" for queue in range(4))])

    async def test_one_queue_is_reset_to_an_offset(self) -> None:
        shown = await self.shown(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -b BROKER -q 0 -o 1 -s 0")
        self.assertEqual(shown[1:], ["reset consumer offset to 1"])

    async def test_one_queue_is_previewed_alone(self) -> None:
        line = f"resetOffsetByTime -g {GROUP} -t {TOPIC} -b BROKER -q 1 -o 1 -s 0 --dry-run"
        (row,) = await self.run_json(line)
        self.assertEqual((row["queueId"], row["consumerOffset"], row["newOffset"], row["again"]), (1, 2, 1, 1))

    async def test_offsets_are_cloned(self) -> None:
        preview = await self.run_json(f"cloneGroupOffset -s {GROUP} -d {OTHER} -t {TOPIC} --dry-run")
        self.assertEqual([(row["consumerOffset"], row["newOffset"]) for row in preview], [(None, 2)] * 4)
        shown = await self.shown(f"cloneGroupOffset -s {GROUP} -d {OTHER} -t {TOPIC}")
        self.assertEqual(shown, [f"clone group offset success. srcGroup[{GROUP}], destGroup=[{OTHER}], topic[{TOPIC}]"])
        rows = await self.run_json(f"consumerProgress -g {OTHER} -t {TOPIC}")
        self.assertEqual([row["consumerOffset"] for row in rows[:4]], [2] * 4)

    async def test_the_brokers_view_of_all_groups(self) -> None:
        shown = [re.sub(TIME, "TIME", line) for line in await self.shown("brokerConsumeStats -b BROKER")]
        self.assertEqual(
            shown,
            [
                "#Topic #Group #Broker Name #QID #Broker Offset #Consumer Offset #Diff #LastTime",
                *(f"{TOPIC} {GROUP} broker-a {queue} 2 2 0 TIME" for queue in range(4)),
                "",
                "Diff Total: 0",
            ],
        )

    async def test_rates_name_each_group_of_a_topic(self) -> None:
        (row,) = await self.run_json(f"statsAll -t {TOPIC}")
        self.assertEqual((row["topic"], row["consumerGroup"], row["accumulation"]), (TOPIC, GROUP, 0))

    async def test_entries_of_a_queue_with_a_groups_filter(self) -> None:
        shown = await self.shown(f"queryCq -t {TOPIC} -q 0 -i 0 -c 1 -g {GROUP}")
        self.assertEqual((shown[0], shown[-6:-3]), ("Subscription data:", ["Queue data:", "max: 2, min: 0", "=" * 38]))
        self.assertEqual(shown[-3:-1], ["idx: 0", shown[-2]])
        self.assertRegex(shown[-2], r"ConsumeQueueData\{physicOffset=0, physicSize=\d+, tagsCode=2598919, ")

    async def test_one_round_of_monitoring(self) -> None:
        lines: list[str] = []
        await monitor_once(self.context(lines, as_json=True))
        events = [json.loads(line) for line in lines]
        self.assertEqual([one["event"] for one in events], ["beginRound", "undone", "endRound"])
        self.assertEqual((events[1]["group"], events[1]["topic"], events[1]["total"]), (GROUP, TOPIC, 0))


class SettingsTests(AdminCase):
    """Groups without members."""

    async def test_a_group_is_made_shown_and_deleted(self) -> None:
        shown = await self.shown(f"updateSubGroup -b BROKER -g {OTHER} -d true -q 2 -r 5")
        self.assertEqual(shown[0], "create subscription group to BROKER success.")
        self.assertEqual(
            shown[1],
            "SubscriptionGroupConfig{groupName=spare, consumeEnable=true, consumeFromMinEnable=false, "
            "consumeBroadcastEnable=true, consumeMessageOrderly=false, retryQueueNums=2, retryMaxTimes=5, "
            "groupRetryPolicy=GroupRetryPolicy{type=CUSTOMIZED, exponentialRetryPolicy=null, "
            "customizedRetryPolicy=null}, brokerId=0, whichBrokerWhenConsumeSlowly=1, "
            "notifyConsumerIdsChangedEnable=true, groupSysFlag=0, consumeTimeoutMinute=15, subscriptionDataSet=null, "
            "attributes={}}",
        )
        config = await self.shown(f"getConsumerConfig -g {OTHER}")
        self.assertEqual(config[:2], ["=" * 29 + "DefaultCluster:broker-a" + "=" * 29, "groupName = spare"])
        self.assertIn("retryMaxTimes = 5", config)
        self.assertEqual(
            await self.shown(f"deleteSubGroup -b BROKER -g {OTHER} -r true"),
            ["delete subscription group [spare] from broker [BROKER] success."],
        )
        self.assertEqual(await self.run_json(f"getConsumerConfig -g {OTHER}"), [])

    async def test_a_whole_cluster_is_named_by_its_brokers(self) -> None:
        await self.run_line(f"updateSubGroup -c CLUSTER -g {OTHER}")
        self.assertEqual(
            await self.shown(f"deleteSubGroup -c CLUSTER -g {OTHER}"),
            ["delete subscription group [spare] from broker [BROKER] in cluster [DefaultCluster] success."],
        )

    async def test_a_retry_policy_is_read_as_json(self) -> None:
        policy = '{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1000,5000]}}'
        *_, config = await self.run_json(f"updateSubGroup -b BROKER -g {OTHER} -p {policy}")
        self.assertEqual(config["groupRetryPolicy"]["customizedRetryPolicy"], {"next": [1000, 5000]})
        self.assertIn("Option -p: ", await self.fails(f"updateSubGroup -b BROKER -g {OTHER} -p nonsense"))

    async def test_groups_of_a_file(self) -> None:
        path = os.path.join(self.folder, "groups.json")
        with open(path, "w") as file:
            json.dump([{"groupName": "listed", "retryQueueNums": 2}], file)
        self.assertEqual(
            await self.shown(f"updateSubGroupList -b BROKER -f {path}"),
            ["submit batch of group config to BROKER success, please check the result later."],
        )
        (found,) = await self.run_json("getConsumerConfig -g listed")
        self.assertEqual(found["config"]["retryQueueNums"], 2)
        self.assertIn("No such file", await self.fails("updateSubGroupList -b BROKER -f /nosuch"))

    async def test_the_mode_of_consuming_is_set(self) -> None:
        self.assertEqual(
            await self.shown(f"setConsumeMode -b BROKER -t {TOPIC} -g {OTHER} -m POP -q 2"),
            [
                "set consume mode to BROKER success.",
                f"topic[{TOPIC}] group[{OTHER}] consume mode[POP] popShareQueueNum[2]",
            ],
        )
        refused = await self.fails(f"setConsumeMode -b BROKER -t {TOPIC} -g {OTHER} -m PUSH")
        self.assertEqual(refused, "Option -m must be PULL or POP, got 'PUSH'")

    async def test_a_reset_without_members_moves_each_queue(self) -> None:
        await self.run_line(f"updateSubGroup -b BROKER -g {OTHER}")
        lines: list[str] = []
        await reset_offline(self.context(lines, as_json=False), OTHER, TOPIC, -1, True, TOPIC, RESET)
        self.assertEqual(
            [" ".join(line.split()) for line in lines],
            [
                "#brokerName #queueId #brokerOffset #consumerOffset #timestampOffset #resetOffset",
                *(f"broker-a {queue} 2 0 2 2" for queue in range(4)),
            ],
        )

    async def test_a_group_that_nobody_knows_is_an_error(self) -> None:
        self.assertIn(f"CODE: {int(ResponseCode.TOPIC_NOT_EXIST)} ", await self.fails("consumerProgress -g nosuch"))
        self.assertIn("CODE: 26 ", await self.fails(f"resetOffsetByTime -g nosuch -t {TOPIC} -s 0"))

    async def test_neither_broker_nor_cluster_is_wrong_usage(self) -> None:
        self.assertIn("[-b a broker's address", await self.fails(f"deleteSubGroup -g {OTHER}"))
        self.assertIn("does not know cluster 'nosuch'", await self.fails(f"deleteSubGroup -c nosuch -g {OTHER}"))
