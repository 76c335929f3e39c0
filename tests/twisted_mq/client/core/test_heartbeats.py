"""Heartbeats of version 2: brokers that know the subscriptions are not told them again."""

from __future__ import annotations

from typing import Any

import attrs

from tests.support.fake_broker import FakeBroker
from tests.twisted_mq.client.consuming.test_push_consumer import ConsumerCase
from twisted_mq.client import ClientOptions, PushConsumer
from twisted_mq.client.core.heartbeats import fingerprint
from twisted_mq.protocol.bodies import HeartbeatData
from twisted_mq.protocol.codes import RequestCode


class Version2(ConsumerCase):
    def setUp(self) -> None:
        super().setUp()
        self.fields = {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "false"}
        process = self.broker.factory.traffic.processors[RequestCode.HEART_BEAT]

        def answer(channel: Any, request: Any) -> Any:
            process(channel, request)
            return request.answer(ext_fields=self.fields)

        self.broker.factory.traffic.processors[RequestCode.HEART_BEAT] = answer

    def joined(self) -> PushConsumer:
        return self.started(client_options=ClientOptions(heartbeat_v2=True))

    @staticmethod
    def shown(broker: FakeBroker) -> list[tuple[bool, int]]:
        """Return for each heartbeat True if it has no subscriptions, and their number."""
        return [
            (one.without_sub, sum(len(each.subscription_data_set) for each in one.consumer_data_set))
            for one in broker.heartbeats
        ]

    def test_subscriptions_are_shown_until_the_broker_has_them(self) -> None:
        self.joined()
        self.broker.heartbeats.clear()
        self.advance(61)
        self.assertEqual(self.shown(self.broker), [(True, 0)] * 2)
        self.assertEqual(len({one.heartbeat_fingerprint for one in self.broker.heartbeats} - {0}), 1)

    def test_new_subscription_is_shown(self) -> None:
        consumer = self.joined()
        self.cluster.add_route("U", "broker-a", 1)
        consumer.subscribe("U")
        self.broker.heartbeats.clear()
        self.advance(31)
        self.assertIn((False, 3), self.shown(self.broker))

    def test_broker_that_says_that_subscriptions_changed_is_shown_them_again(self) -> None:
        self.joined()
        self.fields["IS_SUB_CHANGE"] = "true"
        self.broker.heartbeats.clear()
        self.advance(61)
        self.assertEqual(self.shown(self.broker), [(True, 0), (False, 2)])

    def test_broker_that_does_not_know_version_2_is_always_shown_them(self) -> None:
        self.fields = {}
        self.joined()
        self.broker.heartbeats.clear()
        self.advance(61)
        self.assertEqual(self.shown(self.broker), [(False, 2)] * 2)

    def test_broker_that_comes_back_is_shown_them_again(self) -> None:
        self.joined()
        self.cluster.kill("broker-a")
        self.advance(5)
        self.cluster.network.listen(self.broker.address, self.broker.factory)
        self.broker.heartbeats.clear()
        self.advance(31)
        self.assertIn((False, 2), self.shown(self.broker)[:1])

    def test_fingerprint_is_that_of_groups_and_subscriptions_whatever_their_versions(self) -> None:
        self.joined()
        data: HeartbeatData = self.broker.heartbeats[-1]
        (consumer,) = data.consumer_data_set
        newer = [attrs.evolve(one, sub_version=9) for one in consumer.subscription_data_set]
        same = attrs.evolve(
            data, client_id="other", consumer_data_set=[attrs.evolve(consumer, subscription_data_set=newer)]
        )
        other = attrs.evolve(data, consumer_data_set=[attrs.evolve(consumer, group_name="h")])
        bare = attrs.evolve(data, heartbeat_fingerprint=0)
        self.assertEqual(fingerprint(attrs.evolve(same, heartbeat_fingerprint=0)), fingerprint(bare))
        self.assertNotEqual(fingerprint(attrs.evolve(other, heartbeat_fingerprint=0)), fingerprint(bare))
