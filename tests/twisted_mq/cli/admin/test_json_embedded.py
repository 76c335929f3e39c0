"""With --json every subcommand that an embedded broker serves prints JSON objects, one a line, and nothing else."""

from __future__ import annotations

import json

from tests.twisted_mq.cli.admin.embedded import GROUP, PRODUCERS, TOPIC, AdminCase
from twisted_mq.cli.admin.registry import served

LINES = f"""
updateTopic -b BROKER -t spare -r 2 -w 2
updateTopic -c CLUSTER -t spare -o true
updateTopicPerm -b BROKER -t spare -p 4
updateTopicList -b BROKER -f TOPICS
updateSubGroup -b BROKER -g spare
updateSubGroupList -b BROKER -f GROUPS
setConsumeMode -b BROKER -t {TOPIC} -g spare -m POP
topicRoute -t {TOPIC}
topicRoute -t {TOPIC} -l
topicStatus -t {TOPIC}
topicClusterList -t {TOPIC}
topicList
topicList -c
clusterList
clusterList -m
brokerStatus -b BROKER
brokerStatus -c CLUSTER
haStatus -b BROKER
queryMsgById -t {TOPIC} -i MESSAGE
queryMsgByKey -t {TOPIC} -k key1
queryMsgByUniqueKey -t {TOPIC} -i KEY
queryMsgByOffset -t {TOPIC} -b broker-a -i 0 -o 0
printMsg -t {TOPIC}
printMsgByQueue -t {TOPIC} -a broker-a -i 0 -p true
consumeMessage -t {TOPIC} -b broker-a -i 0 -c 1
sendMessage -t {TOPIC} -p text
sendMsgStatus -b broker-a -c 1
checkMsgSendRT -t {TOPIC} -a 2 -s 8
producer -b BROKER
producerConnection -g {PRODUCERS} -t {TOPIC}
consumerProgress
consumerProgress -g {GROUP}
consumerConnection -g {GROUP}
consumerStatus -g {GROUP} -i CLIENT
brokerConsumeStats -b BROKER
statsAll -t {TOPIC}
queryCq -t {TOPIC} -q 0 -i 0 -c 1 -g {GROUP}
resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0 --dry-run
skipAccumulatedMessage -g {GROUP} -t {TOPIC} --dry-run
cloneGroupOffset -s {GROUP} -d other -t {TOPIC} --dry-run
resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0
skipAccumulatedMessage -g {GROUP} -t {TOPIC}
cloneGroupOffset -s {GROUP} -d other -t {TOPIC}
updateBrokerConfig -b BROKER -k longPollingEnable -v true
getBrokerConfig -b BROKER
updateNamesrvConfig -k orderMessageEnable -v true
getNamesrvConfig
updateKvConfig -s SPACE -k key -v value
deleteKvConfig -s SPACE -k key
wipeWritePerm -b broker-a
addWritePerm -b broker-a
updateOrderConf -t {TOPIC} -m get
allocateMQ -t {TOPIC} -i 10.0.0.1
getConsumerConfig -g spare
exportConfigs -c CLUSTER -f EXPORTS
exportMetadata -c CLUSTER -f EXPORTS
exportMetrics -c CLUSTER -f EXPORTS
cleanExpiredCQ -b BROKER
cleanUnusedTopic -b BROKER
deleteExpiredCommitLog -b BROKER
updateStaticTopic -b broker-a -t spread -qn 2
remappingStaticTopic -b broker-a -t spread
updateColdDataFlowCtrGroupConfig -b BROKER -g {GROUP} -v 1000
getColdDataFlowCtrInfo -b BROKER
removeColdDataFlowCtrGroupConfig -b BROKER -g {GROUP}
setCommitLogReadAheadMode -b BROKER -m 1
resetMasterFlushOffset -b BROKER -o 0
checkRocksdbCqWriteProgress -n NAMESRV -c CLUSTER -t {TOPIC}
exportPopRecord -b BROKER
exportPopRecord -c CLUSTER -d false
rocksDBConfigToJson -c CLUSTER -t topics
deleteSubGroup -b BROKER -g spare
deleteTopic -c CLUSTER -t spare
""".strip().splitlines()

ELSEWHERE = {
    "clusterRT": "endless",
    "startMonitoring": "endless",
    "queryMsgTraceById": "needs traces",
    "dumpCompactionLog": "reads a file",
    **{f"{verb}{noun}": "needs accounts" for noun in ("User", "Acl") for verb in ("create", "update", "delete", "get")},
    **{f"{verb}{noun}": "needs accounts" for noun in ("User", "Acl") for verb in ("list", "copy")},
}
"""Subcommands whose output is looked at in other tests, and why not here."""


class JsonTests(AdminCase):
    """All lines on one cluster, one after the other."""

    async def test_each_line_of_output_is_a_json_object(self) -> None:
        consumer = await self.consume_all()
        words = {"MESSAGE": self.sent[0].offset_msg_id, "KEY": self.sent[0].msg_id, "CLIENT": consumer.client.client_id}
        words |= {
            "EXPORTS": self.folder,
            "TOPICS": self.write_list("topicName"),
            "GROUPS": self.write_list("groupName"),
        }
        for line in LINES:
            for word, value in words.items():
                line = line.replace(word, value) if word in line.split() else line
            printed = await self.run_json(line)
            self.assertTrue(printed, line)
            self.assertEqual([one for one in printed if not isinstance(one, dict)], [], line)

    def write_list(self, key: str) -> str:
        path = f"{self.folder}/{key}.json"
        with open(path, "w") as file:
            json.dump([{key: "listed"}], file)
        return path

    def test_no_subcommand_is_left_out(self) -> None:
        shown = {line.split()[0] for line in LINES} | ELSEWHERE.keys()
        self.assertEqual(sorted(shown), sorted(command.name for command in served()))
