"""Routes: asked once, remembered, told about when they change."""

from __future__ import annotations

from tests.support.client_case import ClientCase
from twisted_mq.client.core.errors import BrokerGone, NameServerUnreachable, TopicNotFound
from twisted_mq.protocol.bodies import BrokerData, TopicRouteData
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.topic_route import publish_info
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.routing.name_servers import NameServers, parse_addresses
from twisted_mq.routing.route_cache import RouteCache, RoutedBroker


class Routes(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 2})
        remoting = RemotingClient(self.clock, connect=self.cluster.network.connect)
        self.changes: list[str] = []
        self.routes = RouteCache(
            NameServers(remoting, parse_addresses(self.cluster.namesrv)),
            lambda topic, route: self.changes.append(topic),
        )
        self.queries = self.cluster.name_servers[0]

    def test_route_is_asked_once_and_then_known(self) -> None:
        route = self.run_to_end(self.routes.find("T"))
        self.assertEqual(route, self.cluster.routes["T"])
        self.assertEqual(self.run_to_end(self.routes.find("T")), route)
        self.assertEqual(len(self.queries.asked), 1)
        self.assertTrue(self.queries.headers(RequestCode.GET_ROUTEINFO_BY_TOPIC)[0].accept_standard_json_only)

    def test_questions_of_the_same_moment_are_one_query(self) -> None:
        first, second = self.routes.update("T"), self.routes.update("T")
        self.settle()
        self.assertEqual(self.successResultOf(first), self.successResultOf(second))
        self.assertEqual(len(self.queries.asked), 1)

    def test_failure_reaches_all_who_asked_and_the_next_question_is_a_new_query(self) -> None:
        first, second = self.routes.update("None"), self.routes.update("None")
        self.settle()
        self.failureResultOf(first, TopicNotFound)
        self.failureResultOf(second, TopicNotFound)
        self.run_to_failure(self.routes.update("None"), TopicNotFound)
        self.assertEqual(len(self.queries.asked), 2)

    def test_only_changes_are_told(self) -> None:
        for _ in range(2):
            self.run_to_end(self.routes.update("T"))
        self.cluster.add_broker("broker-b", {"T": 1})
        self.run_to_end(self.routes.update("T"))
        self.assertEqual(self.changes, ["T", "T"])

    def test_brokers_of_all_routes(self) -> None:
        self.cluster.add_broker("broker-b", {"U": 1})
        for topic in "TU":
            self.run_to_end(self.routes.find(topic))
        self.assertEqual(
            list(self.routes.brokers()),
            [RoutedBroker("broker-a", 0, "10.0.1.1:10911"), RoutedBroker("broker-b", 0, "10.0.1.2:10911")],
        )
        self.routes.forget("U")
        self.assertEqual([one.broker_name for one in self.routes.brokers()], ["broker-a"])

    def test_newest_word_on_a_broker_counts(self) -> None:
        self.cluster.routes["U"] = TopicRouteData(broker_datas=[BrokerData("c", "broker-a", {0: "new:1"})])
        self.run_to_end(self.routes.find("T"))
        self.run_to_end(self.routes.find("U"))
        self.assertEqual(self.routes.master_now("broker-a"), "new:1")

    def test_newest_word_on_a_broker_counts_where_the_route_is_the_same_as_before(self) -> None:
        """Another topic's route was asked for while the master was away, and its topic is gone since."""
        self.cluster.routes["U"] = TopicRouteData(broker_datas=[BrokerData("c", "broker-a", {1: "slave:1"})])
        self.run_to_end(self.routes.find("T"))
        self.run_to_end(self.routes.find("U"))
        self.assertIsNone(self.routes.master_now("broker-a"))
        self.assertEqual(self.run_to_end(self.routes.master("broker-a", "T")), "10.0.1.1:10911")
        self.assertEqual(self.changes, ["T", "U"])

    def test_master_that_is_unknown_is_asked_for_and_named_when_gone(self) -> None:
        self.assertEqual(self.run_to_end(self.routes.master("broker-a", "T")), "10.0.1.1:10911")
        error = self.run_to_failure(self.routes.master("broker-x", "T"), BrokerGone)
        self.assertEqual(
            str(error),
            "broker broker-x has no master registered with name server 10.0.0.1:9876. "
            "List brokers: mqadmin clusterList -n 10.0.0.1:9876",
        )

    def test_address_for_group_questions_is_the_masters_or_a_slaves(self) -> None:
        self.cluster.routes["S"] = TopicRouteData(
            broker_datas=[BrokerData("c", "x", {0: "m:1", 1: "s:1"}), BrokerData("c", "y", {1: "s:2"}), BrokerData("c", "z", {})]
        )  # fmt: skip
        self.run_to_end(self.routes.find("S"))
        self.assertEqual(self.routes.addresses_of("S"), ["m:1", "s:2"])
        self.assertEqual(self.routes.addresses_of("unknown"), [])


class MissingTopics(Routes):
    def test_error_names_topic_and_commands(self) -> None:
        error = self.run_to_failure(self.routes.find_or_default("New", 4), TopicNotFound)
        self.assertIn("topic New does not exist on name server 10.0.0.1:9876 and no broker there", str(error))
        self.assertIn("mqadmin updateTopic -n 10.0.0.1:9876 -c DefaultCluster -t New", str(error))

    def test_topic_that_the_first_send_creates_gets_the_default_topics_route(self) -> None:
        self.cluster.add_route("TBW102", "broker-a", 8)
        route = self.run_to_end(self.routes.find_or_default("New", 4))
        self.assertEqual(len(publish_info("New", route).queues), 4)
        self.assertEqual(self.routes.get("New"), route)

    def test_unreachable_name_server_is_another_error(self) -> None:
        self.cluster.network.close("10.0.0.1:9876")
        self.run_to_failure(self.routes.find_or_default("New", 4), NameServerUnreachable)

    def test_refusal_of_the_name_server_is_told_as_it_is(self) -> None:
        self.queries.refuse[105] = BrokerError(ResponseCode.SYSTEM_ERROR, "broken")
        self.assertIn("broken", str(self.run_to_failure(self.routes.find("T"), BrokerError)))

    def test_topic_that_vanished_keeps_its_route(self) -> None:
        route = self.run_to_end(self.routes.find("T"))
        del self.cluster.routes["T"]
        self.run_to_failure(self.routes.update("T"), TopicNotFound)
        self.assertEqual(self.routes.get("T"), route)
