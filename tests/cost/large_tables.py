"""A broker with half a million groups and 100 topics of 65,535 queues: `python -m tests.cost.large_tables`.

Prints how long the start takes, and for each request its answer, its time and the worst turn of the reactor, in processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import attrs

from tests.cost.run import Measured, Servers
from tests.fuzz.run import ask
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable, SubscriptionGroupTable, TopicTable

QUEUES = 65_535
SETTLE_SECONDS = 5.0
TIMERS_SECONDS = 15.0
HEADING = "| request | answer | s | worst turn, ms |\n|---|---|---:|---:|"
FIELDS = {"consumerGroup": "G1", "group": "G1", "topic": "Wide0", "queueId": "0", "commitOffset": "0", "isOrder": "false",
          "srcGroup": "G0", "destGroup": "H", "compareGroup": "G1", "filterGroups": "", "groupName": "G3",
          "cleanOffset": "true"}  # fmt: skip
NEW_TOPIC = {"topic": "New", "defaultTopic": "TBW102", "readQueueNums": str(QUEUES), "writeQueueNums": str(QUEUES),
             "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip
REQUESTS: tuple[tuple[RequestCode, Mapping[str, str], bytes], ...] = (
    (RequestCode.GET_BROKER_CONFIG, {}, b""),
    (RequestCode.GET_ALL_TOPIC_CONFIG, {}, b""),
    (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {}, b""),
    (RequestCode.GET_ALL_CONSUMER_OFFSET, {}, b""),
    (RequestCode.GET_TOPIC_STATS_INFO, FIELDS, b""),
    (RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G1"}, b""),
    (RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G0"}, b""),
    (RequestCode.GET_BROKER_CONSUME_STATS, FIELDS, b""),
    (RequestCode.QUERY_CONSUME_TIME_SPAN, FIELDS, b""),
    (RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, FIELDS, b""),
    (RequestCode.QUERY_TOPICS_BY_CONSUMER, FIELDS, b""),
    (RequestCode.QUERY_CORRECTION_OFFSET, FIELDS, b""),
    (RequestCode.CLONE_GROUP_OFFSET, FIELDS, b""),
    (RequestCode.UPDATE_CONSUMER_OFFSET, FIELDS, b""),
    (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, b'{"groupName":"New"}'),
    (RequestCode.UPDATE_AND_CREATE_TOPIC, NEW_TOPIC, b""),
    (RequestCode.DELETE_SUBSCRIPTIONGROUP, FIELDS, b""),
    (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Wide1"}, b""),
    (RequestCode.CLEAN_UNUSED_TOPIC, {}, b""),
    (RequestCode.GET_BROKER_RUNTIME_INFO, {}, b""),
)


@attrs.frozen
class Tables:
    """Amounts of data that the broker has."""

    groups: int
    topics: int

    def write(self, config: Path) -> None:
        """Write the files of its tables. Each group has an offset on one queue, the first one on all queues of all topics."""
        config.mkdir(parents=True)
        topics = TopicTable(str(config / "topics.json"))
        topics.topics = {
            f"Wide{number}": TopicConfig(f"Wide{number}", QUEUES, QUEUES, 6) for number in range(self.topics)
        }
        groups = SubscriptionGroupTable(str(config / "subscriptionGroup.json"))
        groups.groups = {f"G{number}": SubscriptionGroupConfig(f"G{number}") for number in range(self.groups)}
        offsets = ConsumerOffsetTable(str(config / "consumerOffset.json"))
        offsets.offsets = {f"Wide{number % self.topics}@G{number}": {0: 0} for number in range(self.groups)}
        offsets.offsets |= {f"Wide{number}@G0": dict.fromkeys(range(QUEUES), 0) for number in range(self.topics)}
        for table in (topics, groups, offsets):
            table.save()


async def rows(servers: Servers) -> list[str]:
    """Ask, and look at what runs by itself."""
    loop = asyncio.get_running_loop()
    found: list[str] = []
    for code, fields, body in REQUESTS:
        measured, began = Measured(servers), time.monotonic()
        command = RemotingCommand.request(code, dict(fields), body)
        answer = await loop.run_in_executor(None, ask, servers.ports["broker"], command)
        seconds = time.monotonic() - began
        worst, _, _ = await measured.settle(SETTLE_SECONDS)
        said = f"{answer.code} {(answer.remark or '')[:60]}".strip()
        found.append(
            f"| {int(code)} {code.name} | {said}, {len(answer.body):,} bytes | {seconds:.1f} | {1000 * worst:.1f} |"
        )
    measured = Measured(servers)
    await asyncio.sleep(TIMERS_SECONDS)
    worst, _, _ = await measured.settle(SETTLE_SECONDS)
    found.append(f"| what runs by itself | | {TIMERS_SECONDS:.1f} | {1000 * worst:.1f} |")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=500_000)
    parser.add_argument("--topics", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mq-large-") as folder:
        Tables(options.groups, options.topics).write(Path(folder) / "store" / "config")
        began = time.monotonic()
        servers = Servers(Path(folder))
        try:
            print(f"start: {time.monotonic() - began:.1f} s, {servers.anonymous_bytes >> 20} MiB", flush=True)
            print(HEADING, *asyncio.run(rows(servers)), sep="\n")
            print(f"\nLongest full collection: {1000 * servers.longest_collection:.0f} ms, {servers.objects:,} objects")
        finally:
            servers.process.stop()


if __name__ == "__main__":
    main()
