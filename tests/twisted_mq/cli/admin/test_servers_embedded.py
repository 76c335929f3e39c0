"""Subcommands of topics, brokers and name servers against embedded ones."""

from __future__ import annotations

import json
import os

from tests.twisted_mq.cli.admin.embedded import TOPIC, AdminCase


class TopicTests(AdminCase):
    """Topics and their settings."""

    async def test_the_permission_of_a_topic(self) -> None:
        self.assertEqual(
            await self.shown(f"updateTopicPerm -b BROKER -t {TOPIC} -p 4"),
            [
                "update topic perm from 6 to 4 in BROKER success.",
                f"TopicConfig [topicName={TOPIC}, readQueueNums=4, writeQueueNums=4, perm=R--, "
                "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={}].",
            ],
        )
        self.assertEqual(
            await self.fails(f"updateTopicPerm -b 127.0.0.1:1 -t {TOPIC} -p 6"),
            "updateTopicPerm error broker not exit or broker is not master!",
        )

    async def test_topics_of_a_file(self) -> None:
        path = os.path.join(self.folder, "topics.json")
        with open(path, "w") as file:
            json.dump([{"topicName": "listed", "readQueueNums": 2, "writeQueueNums": 2}], file)
        self.assertEqual(
            await self.shown(f"updateTopicList -b BROKER -f {path}"),
            ["submit batch of topic config to BROKER success, please check the result later."],
        )
        await self.wait(lambda: self.has_route("listed"))
        (route,) = await self.run_json("topicRoute -t listed")
        self.assertEqual(route["queueDatas"][0]["writeQueueNums"], 2)

    async def test_the_order_setting_of_a_topic(self) -> None:
        for words, text in (
            ("put -v broker-a:4", "update orderConf success. topic=[Orders], orderConf=[broker-a:4]"),
            ("get", "get orderConf success. topic=[Orders], orderConf=[broker-a:4] "),
            ("delete", "delete orderConf success. topic=[Orders]"),
            ("get", "get orderConf success. topic=[Orders], orderConf=[null] "),
        ):
            self.assertEqual(await self.run_line(f"updateOrderConf -t {TOPIC} -m {words}"), text)
        self.assertEqual(await self.fails(f"updateOrderConf -t {TOPIC} -m put"), "please set orderConf with option -v.")

    async def test_the_clusters_of_a_topic_and_who_would_have_its_queues(self) -> None:
        self.assertEqual(await self.shown(f"topicClusterList -t {TOPIC}"), ["DefaultCluster"])
        (value,) = await self.run_json(f"allocateMQ -t {TOPIC} -i 10.0.0.1,10.0.0.2,10.0.0.3")
        held = {who: [queue["queueId"] for queue in queues] for who, queues in value["result"].items()}
        self.assertEqual(held, {"10.0.0.1": [0, 1], "10.0.0.2": [2], "10.0.0.3": [3]})

    async def test_topics_routes_and_ends_as_json(self) -> None:
        self.assertIn({"topic": TOPIC}, await self.run_json("topicList"))
        self.assertIn(
            {"cluster": "DefaultCluster", "topic": TOPIC, "consumerGroup": ""}, await self.run_json("topicList -c")
        )
        ends = await self.run_json(f"topicStatus -t {TOPIC}")
        self.assertEqual([(row["queueId"], row["minOffset"], row["maxOffset"]) for row in ends],
                         [(queue, 0, 2) for queue in range(4)])  # fmt: skip
        self.assertEqual(
            await self.run_json(f"deleteTopic -c CLUSTER -t {TOPIC}"),
            [
                {"deleted": TOPIC, "cluster": "DefaultCluster"},
                {"deleted": TOPIC, "nameServers": [self.cluster.name_server]},
            ],
        )


class ServerTests(AdminCase):
    """Brokers and name servers."""

    async def test_settings_of_a_broker_are_shown_and_changed(self) -> None:
        self.assertEqual(
            await self.shown("updateBrokerConfig -b BROKER -k longPollingEnable -v false"),
            ["update broker config success, BROKER"],
        )
        shown = await self.shown("getBrokerConfig -b BROKER")
        self.assertEqual(shown[0], "============BROKER============")
        self.assertIn("longPollingEnable = false", shown)
        of_cluster = await self.shown("getBrokerConfig -c CLUSTER")
        self.assertEqual(of_cluster[0], "============Master: BROKER============")
        refused = await self.fails("updateBrokerConfig -b BROKER -k brokerConfigPath -v /tmp/x")
        self.assertIn("cannot be changed", refused)

    async def test_settings_of_a_name_server_are_shown_and_changed(self) -> None:
        self.assertEqual(
            await self.shown("updateNamesrvConfig -k orderMessageEnable -v true"),
            ["update name server config success!", "orderMessageEnable : true"],
        )
        (found,) = await self.run_json("getNamesrvConfig")
        self.assertEqual(
            (found["nameServer"], found["settings"]["orderMessageEnable"]), (self.cluster.name_server, "true")
        )

    async def test_keys_of_a_name_server(self) -> None:
        for line, text in (
            ("updateKvConfig -s SPACE -k key -v value", "create or update kv config to namespace success."),
            ("deleteKvConfig -s SPACE -k key", "delete kv config from namespace success."),
        ):
            self.assertEqual(await self.run_line(line), text)

    async def test_the_right_to_write_is_taken_and_given_back(self) -> None:
        topics = len(self.cluster.namesrv.routes.topics)
        for name, word in (("wipeWritePerm", "wipe"), ("addWritePerm", "add")):
            self.assertEqual(
                await self.shown(f"{name} -b broker-a"),
                [f"{word} write perm of broker[broker-a] in name server[NAMESRV] OK, {topics}"],
            )

    async def test_brokers_clean_up(self) -> None:
        for line in ("cleanExpiredCQ -b BROKER", "cleanUnusedTopic -c CLUSTER", "deleteExpiredCommitLog"):
            self.assertEqual(await self.shown(line), ["success"])
            self.assertEqual(await self.run_json(line), [{"brokers": [self.cluster.broker_address]}])

    async def test_figures_of_brokers_as_json(self) -> None:
        (status,) = await self.run_json("brokerStatus -b BROKER")
        self.assertEqual(
            (status["broker"], status["figures"]["brokerVersionDesc"]), (self.cluster.broker_address, "V5_3_3")
        )
        (listed,) = await self.run_json("clusterList")
        self.assertEqual((listed["cluster"], listed["broker"], listed["brokerId"]), ("DefaultCluster", "broker-a", 0))
        (replication,) = await self.run_json("haStatus -b BROKER")
        self.assertIs(replication["status"]["master"], True)

    async def test_exports_are_files_of_json(self) -> None:
        for line, name, keys in (
            ("exportConfigs -c CLUSTER", "configs.json", ["brokerConfigs", "clusterScale"]),
            (
                "exportMetadata -c CLUSTER",
                "metadata.json",
                ["exportTime", "subscriptionGroupTable", "topicConfigTable"],
            ),
            ("exportMetadata -c CLUSTER -g", "subscriptionGroup.json", ["exportTime", "subscriptionGroupTable"]),
            ("exportMetadata -b BROKER -t", "topic.json", ["dataVersion", "topicConfigTable"]),
            ("exportMetrics -c CLUSTER", "metrics.json", ["evaluateReport", "totalData"]),
        ):
            path = os.path.join(self.folder, name)
            self.assertEqual(await self.run_line(f"{line} -f {self.folder}"), f"export {path} success")
            with open(path) as file:
                self.assertEqual(sorted(json.load(file)), keys)

    async def test_only_topics_of_users_are_exported(self) -> None:
        await self.run_line(f"exportMetadata -c CLUSTER -f {self.folder}")
        with open(os.path.join(self.folder, "metadata.json")) as file:
            exported = json.load(file)
        self.assertIn(TOPIC, exported["topicConfigTable"])
        self.assertEqual([name for name in exported["topicConfigTable"] if name.startswith(("rmq_sys_", "TBW"))], [])

    async def test_figures_of_the_last_minute(self) -> None:
        (row,) = await self.run_json(f"statsAll -t {TOPIC}")
        self.assertEqual((row["topic"], row["consumerGroup"], row["outTps"]), (TOPIC, None, None))
