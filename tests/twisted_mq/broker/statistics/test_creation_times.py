"""Requests that make topics and groups are timed to their answers, those that fail too."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory
from twisted_mq.broker.statistics.creation_times import CreationTimes
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, SubscriptionGroupList, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic

TOPIC = {
    "topic": "T", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
    "topicFilterType": "SINGLE_TAG", "order": "false",
}  # fmt: skip


class CreationTimesTests(SynchronousTestCase):
    def test_each_creation_is_counted_by_how_it_went(self) -> None:
        broker = BrokerInMemory()
        peer, times = broker.connect(), broker.controller.statistics.creations
        create, group = RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        for name in ("T", "a b", "SCHEDULE_TOPIC_XXXX"):
            peer.ask(create, {**TOPIC, "topic": name})
        peer.ask(group, body=encode_body(SubscriptionGroupConfig(group_name="G")))
        peer.ask(group, body=b"{")
        groups = SubscriptionGroupList(group_config_list=[SubscriptionGroupConfig(group_name="H")])
        peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=encode_body(groups))
        self.assertEqual(
            {key: sum(spread.counts) for key, spread in times.topics.items()},
            {("success", False): 1, ("failure", False): 1, ("failure", True): 1},
        )
        self.assertEqual(
            {key: sum(spread.counts) for key, spread in times.groups.items()}, {"success": 2, "failure": 1}
        )

    def test_what_is_waited_for_counts(self) -> None:
        clock, times = Clock(), CreationTimes()

        def slow(channel: SocketChannel, command: RemotingCommand) -> Answer:
            clock.advance(0.05)
            return command.answer()

        code = int(RequestCode.UPDATE_AND_CREATE_TOPIC)
        command = RemotingCommand(code, ext_fields={"topic": "T"})
        times.timed({code: slow}, clock.seconds)[code](SocketChannel(Traffic({}, clock)), command)
        spread = times.topics["success", False]
        self.assertEqual((spread.counts, round(spread.total)), ([0, 1, 0, 0, 0, 0], 50))
