"""The mqadmin commands that applications and operators need every day, with masks that make their outputs comparable.

Words in capitals are names of the stage: TOPIC has messages, GROUP a connected consumer that took them, PRODUCER
a connected producer; SPARE_TOPIC and SPARE_GROUP may be changed and deleted.
"""

from __future__ import annotations

import re

COMMANDS = """
clusterList
clusterList -m
topicList
topicList -c
topicRoute -t TOPIC
topicRoute -t TOPIC -l
topicClusterList -t TOPIC
updateTopic -b BROKER -t SPARE_TOPIC -r 2 -w 2
updateTopic -c DefaultCluster -t SPARE_TOPIC -r 3 -w 3 -o true
updateTopicList -b BROKER -f TOPIC_FILE
updateTopicPerm -b BROKER -t SPARE_TOPIC -p 4
updateTopicPerm -b BROKER -t SPARE_TOPIC -p 6
updateSubGroup -b BROKER -g SPARE_GROUP -d true -q 2 -r 5
updateSubGroup -c DefaultCluster -g SPARE_GROUP
updateSubGroupList -b BROKER -f GROUP_FILE
getConsumerConfig -g SPARE_GROUP
setConsumeMode -b BROKER -t TOPIC -g SPARE_GROUP -m POP -q 2
setConsumeMode -c DefaultCluster -t TOPIC -g SPARE_GROUP -m PULL
setConsumeMode -b BROKER -t NoSuchTopic -g SPARE_GROUP -m POP
setConsumeMode -b BROKER -t TOPIC -g SPARE_GROUP -m PUSH
consumerProgress
consumerProgress -g GROUP
consumerProgress -g GROUP -t TOPIC
consumerProgress -g GROUP -s true
consumerProgress -g NoSuchGroup
consumerStatus -g GROUP
consumerStatus -g GROUP -i CLIENT
consumerConnection -g GROUP
consumerConnection -g NoSuchGroup
producerConnection -g PRODUCER -t TOPIC
producerConnection -g NoSuchGroup -t TOPIC
producer -b BROKER
brokerConsumeStats -b BROKER
queryMsgById -t TOPIC -i MESSAGE
queryMsgById -t TOPIC -i NO_MESSAGE
queryMsgById -t TOPIC -i MESSAGE -g GROUP -d CLIENT
queryMsgByOffset -t TOPIC -b broker-a -i 0 -o 0
queryMsgByOffset -t TOPIC -b broker-a -i 0 -o 99
queryCq -t TOPIC -q 0 -i 0 -c 2
queryCq -t TOPIC -q 0 -i 0 -c 1 -g GROUP
queryCq -t TOPIC -q 0 -i 99 -c 2
printMsg -t TOPIC -d true
printMsg -t TOPIC -s TagA
printMsgByQueue -t TOPIC -a broker-a -i 0 -p true -d true
printMsgByQueue -t TOPIC -a broker-a -i 0 -f true
consumeMessage -t TOPIC -b broker-a -i 0 -o 0 -c 1
sendMessage -t SPARE_TOPIC -p text -k key -c TagA
sendMsgStatus -b broker-a -c 2
checkMsgSendRT -t SPARE_TOPIC -a 3 -s 10
clusterRT -a 2 -i 5 -s 10
resetOffsetByTime -g GROUP -t TOPIC -s now
resetOffsetByTime -g GROUP -t TOPIC -s 0
resetOffsetByTime -g GROUP -t TOPIC -b BROKER -q 0 -o 1 -s 0
resetOffsetByTime -g GROUP -t TOPIC -b BROKER -q 0 -o 99 -s 0
resetOffsetByTime -g NoSuchGroup -t TOPIC -s -1
skipAccumulatedMessage -g GROUP -t TOPIC
cloneGroupOffset -s GROUP -d SPARE_GROUP -t TOPIC
getBrokerConfig -b BROKER
updateBrokerConfig -b BROKER -k longPollingEnable -v true
updateBrokerConfig -b BROKER -k brokerConfigPath -v /tmp/x
getNamesrvConfig
queryMsgByKey -t TOPIC -k key1
queryMsgByUniqueKey -t TOPIC -i KEY
queryMsgByKey -t TOPIC -k nokey
haStatus -b BROKER
updateKvConfig -s SPACE -k key -v value
deleteKvConfig -s SPACE -k key
wipeWritePerm -b broker-a
addWritePerm -b broker-a
allocateMQ -t TOPIC -i 10.0.0.1,10.0.0.2
cleanExpiredCQ -b BROKER
cleanExpiredCQ -c DefaultCluster
cleanUnusedTopic -b BROKER
deleteExpiredCommitLog -b BROKER
updateOrderConf -t SPARE_TOPIC -m put -v broker-a:4
updateOrderConf -t SPARE_TOPIC -m get
updateOrderConf -t SPARE_TOPIC -m delete
updateNamesrvConfig -k orderMessageEnable -v true
exportConfigs -c DefaultCluster -f EXPORTS
exportMetadata -c DefaultCluster -f EXPORTS
exportMetadata -b BROKER -t -f EXPORTS
exportMetrics -c DefaultCluster -f EXPORTS
queryMsgTraceById -i KEY
dumpCompactionLog -f EXPORTS/nosuch
getColdDataFlowCtrInfo -b BROKER
getColdDataFlowCtrInfo -c DefaultCluster
setCommitLogReadAheadMode -b BROKER -m 1
setCommitLogReadAheadMode -c DefaultCluster -m 0
updateColdDataFlowCtrGroupConfig -b BROKER -g GROUP -v 1000
updateColdDataFlowCtrGroupConfig -c DefaultCluster -g GROUP -v 1000
removeColdDataFlowCtrGroupConfig -b BROKER -g GROUP
resetMasterFlushOffset -b BROKER -o 0
exportPopRecord -b BROKER
exportPopRecord -c DefaultCluster -d false
rocksDBConfigToJson -c DefaultCluster -t topics
deleteSubGroup -b BROKER -g SPARE_GROUP -r true
deleteTopic -c DefaultCluster -t SPARE_TOPIC
""".strip().splitlines()

NEEDING = """
getSyncStateSet -a BROKER -b broker-a
getControllerMetaData -a BROKER
getControllerConfig -a BROKER
updateControllerConfig -a BROKER -k key -v value
electMaster -a BROKER -b 1 -bn broker-a -c DefaultCluster
addBroker -c BROKER -b /nowhere
removeBroker -c BROKER -b DefaultCluster:broker-a:0
""".strip().splitlines()
"""Commands for a controller or a container: with either broker Apache's tool fails alike. Ours names what they need."""

ELSEWHERE = {
    **{f"{verb}{noun}": "test_access" for noun in ("User", "Acl") for verb in ("create", "update", "delete", "get")},
    **{f"{verb}{noun}": "test_access" for noun in ("User", "Acl") for verb in ("list", "copy")},
    "updateStaticTopic": "test_our_mqadmin",
    "remappingStaticTopic": "test_our_mqadmin",
    "brokerStatus": "test_runtime_info_has_apaches_keys",
    "checkRocksdbCqWriteProgress": "without RocksDB our broker says so, Apache's in its log alone: tests/twisted_mq/cli/admin",
    "getBrokerEpoch": "without a controller Apache's broker refuses with code 1, ours with 3",
    "cleanBrokerMetadata": "asks controllers alone, and ends the virtual machine without one",
    "exportMetadataInRocksDB": "asks no server, and ends the virtual machine where there is no RocksDB",
}
"""Commands that are run in other tests, or nowhere."""

SAMPLED = """
topicStatus -t TOPIC
statsAll -t TOPIC
statsAll -a -t TOPIC
""".strip().splitlines()
"""Commands that show rates of the last minute: a broker knows them after ten seconds."""

ALONE = ("brokerConsumeStats", "consumeMessage", "queryMsgByUniqueKey", "sendMessage")
"""Commands that keep a client in a static field, which ends with the first call: each has a virtual machine of its own."""

ENDLESS = {"clusterRT": 2500, "startMonitoring": 5000}
"""Commands that go on for ever, and after how many ms they are interrupted."""

SETTINGS = ("getBrokerConfig", "getNamesrvConfig")
"""Commands whose lines are settings: Apache's have many more, for parts that do not exist here."""

_REPLACED = (
    (r"MessageTrack .*", "MessageTracks"),
    (r"/tmp/\S+/(?=[0-9A-F]{32})|/tmp/\S+/(?=MESSAGE|KEY)", "FOLDER/"),
    (r"CODE: (\d+) .*", lambda found: "CODE: " + "".join(chr(ord("a") + int(digit)) for digit in found[1])),
    (r"(?i)properties *[=:] *\{.*?\}", "PROPERTIES"),
    (r"(@|0x)[0-9a-f]{6,16}\b", "HASH"),
    (r"\b[0-9A-F]{32}\b", "ID"),
    (r"\d+\.\d+\.\d+\.\d+@\S+", "CLIENT"),
    (r"/?127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d([:,.]\d+)?", "TIME"),
    (r"-?\d+(\.\d+)?(E-?\d+)?", "N"),
)

_OF_A_LOG = re.compile(r"\d\d:\d\d:\d\d,\d+ \|-|SLF4J")
"""Pattern of the lines that a new virtual machine prints about its log."""

_NAME_OF_ANOTHER_TEST = re.compile(r"_[0-9a-f]{8}")
"""In a name that the stage does not know: the servers serve the other tests of the run too."""

THROWN = re.compile(r"^(org|java)\.\S+Exception", re.MULTILINE)
"""Pattern of a failure in the output of Apache's tool."""

ONLY_APACHE = ("TOPIC TOPIC", "FAQ for further details.,")
"""Lines with these exist only at Apache's: its table of who consumes a topic names the topic itself as a group, which
then is looked for in vain. For the same reason the lines of who has consumed a message are taken as one."""


def shape_of(printed: str, names: dict[str, str]) -> list[str]:
    """The distinct lines of an output, sorted, with names, times, addresses and numbers made the same.

    Response codes stay apart from each other; the client's stack traces are left out.
    """
    lines = (_with_words(line, names) for line in printed.splitlines() if not _is_noise(line))
    shapes = {_line_shape(line) for line in lines if not _NAME_OF_ANOTHER_TEST.search(line)}
    return sorted(line for line in shapes if line and not any(part in line for part in ONLY_APACHE))


def _is_noise(line: str) -> bool:
    return bool(re.match(r"\s+(at |\.\.\.)", line) or _OF_A_LOG.match(line))


def _with_words(line: str, names: dict[str, str]) -> str:
    for word in sorted(names.keys() - {"MESSAGE", "NO_MESSAGE"}, key=lambda word: -len(names[word])):
        line = line.replace(names[word], word)
    return line


def _line_shape(line: str) -> str:
    for pattern, word in _REPLACED:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def keys_of(printed: str) -> set[str]:
    """The keys of lines as `key = value` or `key : value`, those of the delay levels as one."""
    return {
        re.sub(r"^(scheduleMessageOffset)_\d+$", r"\1", match[1])
        for match in re.finditer(r"^([\w.]+)\s*[=:] ", printed, re.MULTILINE)
    }
