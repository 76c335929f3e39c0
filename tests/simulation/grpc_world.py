"""Simulated worlds of gRPC clients: one broker with its gRPC port, producers, consumers of three kinds, faults.

`python -m tests.simulation.grpc_world --first 1 --count 100`, or `--seed 7` for one with its history.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from typing import Any

import attrs

from tests.simulation.grpc_clients import GrpcConsumer, GrpcNode, GrpcProducer
from tests.simulation.grpc_observer import GrpcObserver
from tests.simulation.nodes import BrokerNode, NameServerNode
from tests.simulation.world import Broken, World
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig

PLAIN, FIFO = "Plain", "Fifo"
GROUPS = {"simple": PLAIN, "push": PLAIN, "fifo": FIFO}
QUICK = {"defaultInvisibleTimeMills": 10_000, "renewAheadTimeMillis": 4_000, "renewSchedulePeriodMillis": 1_000}
"""A push consumer works for up to 25 s on a message that is invisible for 10 s at first."""
CALM_SECONDS = 400.0
"""The time after the last fault in which all must be consumed. A message that was renewed once is invisible for a minute."""
RETURN_SECONDS = 75.0
"""The time after that in which a message comes back whose acknowledgement had no effect: a renewal is for a minute."""
HISTORY_LINES = 60


@attrs.frozen
class Outcome:
    """Result of a seed."""

    seed: int
    broken: str
    trace: str
    sent: int
    handed_out: int
    renewed: int
    faults: int
    history: list[str]


class GrpcScenario:
    """Made from a world; `run` raises Broken."""

    def __init__(self, world: World, *, faulty: bool = True) -> None:
        self.world = world
        self.faulty = faulty
        self.random = random.Random(world.random.getrandbits(32))
        self.observer = GrpcObserver(world, GROUPS)
        self.faults = 0
        settings = world._folder / "rmq-proxy.json"
        settings.write_text(json.dumps(QUICK))
        self.name_server = NameServerNode(world, "10.0.0.1")
        self.broker = BrokerNode(
            world, "10.0.1.1", broker_name="broker-a", namesrv_addr=self.name_server.address, grpc_server_port=8081,
            timer_wheel_enable=True,
            flush_disk_type=self.random.choice(("ASYNC_FLUSH", "SYNC_FLUSH")), proxy_config_path=str(settings),
        )  # fmt: skip
        common = world, self.broker.name, self.observer
        self.producers = [self._producer(1, PLAIN, []), self._producer(2, FIFO, ["a", "b"])]
        self.consumers = [
            GrpcConsumer(world, f"10.0.9.{number}", common[1], common[2], group, renews=group != "simple")
            for number, group in enumerate(sorted(GROUPS) * 2, 3)
        ]
        self._ends: list[tuple[float, Callable[[], None]]] = []

    def _producer(self, number: int, topic: str, lanes: list[str]) -> GrpcProducer:
        return GrpcProducer(self.world, f"10.0.9.{number}", self.broker.name, self.observer, topic, lanes)

    @property
    def clients(self) -> list[GrpcNode]:
        return [*self.producers, *self.consumers]

    def run(self) -> None:
        self.name_server.start()
        self._start_broker()
        for client in self.consumers:
            client.start()
        self._pass(15.0)  # new groups begin behind the last message, and brokers save that now and then
        for producer in self.producers:
            producer.start()
        end = self.world.seconds + self.random.uniform(30.0, 90.0)
        while self.world.seconds < end:
            self._pass(self.random.uniform(0.0, 8.0))
            if self.faulty:
                self._fault()
        self._calm()

    def _start_broker(self) -> None:
        self.broker.start()
        self._pass(2.0)
        controller = self.broker.service.controller
        controller.topics.update(
            [TopicConfig(PLAIN, 2, 2), TopicConfig(FIFO, 2, 2, attributes={"message.type": "FIFO"})]
        )
        for group in GROUPS:
            controller.groups.update(SubscriptionGroupConfig(group, consume_message_orderly=group == "fifo"))
        self._pass(1.0)

    def _fault(self) -> None:
        kinds = (self._kill_broker, self._kill_client, self._cut, self._reset)
        over = self.random.choice(kinds)()
        if over is not None:
            self.faults += 1
            self._ends.append((self.world.seconds + self.random.choice((0.2, 2.0, 15.0)), over))

    def _kill_broker(self) -> Callable[[], None] | None:
        if not self.broker.is_running:
            return None
        self.broker.kill()
        self.observer.broker_died()
        return lambda: None if self.broker.is_running else self._start_broker()

    def _kill_client(self) -> Callable[[], None] | None:
        client = self.random.choice(self.clients)
        if not client.is_running:
            return None
        client.kill()
        self.observer.vanished(client.name)
        return lambda: None if client.is_running else client.start()

    def _cut(self) -> Callable[[], None]:
        client = self.random.choice(self.clients)
        self.world.told("cut", client=client.name)
        self.world.network.cut(client.name, self.broker.name)
        self.observer.vanished(client.name)
        return lambda: self.world.network.heal(client.name, self.broker.name)

    def _reset(self) -> None:
        client = self.random.choice(self.clients)
        self.world.told("reset", client=client.name)
        self.world.network.reset(client.name, self.broker.name)
        self.observer.vanished(client.name)

    def _pass(self, seconds: float) -> None:
        end = self.world.seconds + seconds
        while (left := end - self.world.seconds) > 0.001:
            self.world.run(min(1.0, left))
            if self.observer.broken:
                raise Broken(self.observer.broken)
            due = [one for one in self._ends if one[0] <= self.world.seconds]
            self._ends = [one for one in self._ends if one[0] > self.world.seconds]
            for _, over in due:
                over()

    def _calm(self) -> None:
        """End all faults, send no more; everything must be consumed, and nothing acknowledged must come back."""
        ends, self._ends = self._ends, []
        for _, over in ends:
            over()
        for producer in self.producers:
            producer.is_sending = False
        for consumer in self.consumers:
            consumer.hurries = True
        end = self.world.seconds + CALM_SECONDS
        while self.observer.missing() and self.world.seconds < end:
            self._pass(5.0)
        if missing := self.observer.missing():
            raise Broken(f"not consumed: {missing[:3]}, {len(missing)} in all")
        self._pass(RETURN_SECONDS)


def simulate(seed: int, *, faulty: bool = True) -> Outcome:
    """Run one world."""
    with World(seed) as world:
        scenario = GrpcScenario(world, faulty=faulty)
        broken = ""
        try:
            scenario.run()
        except Broken as error:
            broken = str(error)
        observer = scenario.observer
        sent = sum(map(len, observer.acknowledged.values()))
        trace = world.trace.hexdigest()
        history = list(world.history)
    return Outcome(seed, broken, trace, sent, observer.handed_out, observer.renewed, scenario.faults, history)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--without-faults", action="store_true", help="all in one life of the broker")
    options = parser.parse_args(arguments)
    seeds: Any = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    found = []
    for one in (simulate(seed, faulty=not options.without_faults) for seed in seeds):
        found.append(one)
        if one.broken or options.seed is not None:
            print(*(one.history if options.seed is not None else one.history[-HISTORY_LINES:]), sep="\n")
            print(f"seed {one.seed}: {one.broken or 'all promises kept'}", flush=True)
    print(
        f"{len(found)} seeds, {sum(one.sent for one in found):,} messages sent, {sum(one.handed_out for one in found):,}"
        f" handed out, {sum(one.renewed for one in found):,} renewed, {sum(one.faults for one in found):,} faults,"
        f" {sum(bool(one.broken) for one in found)} broke a promise"
    )
    return any(one.broken for one in found)


if __name__ == "__main__":
    sys.exit(main())
