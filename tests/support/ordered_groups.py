"""Broker groups that keep order, on a virtual network: masters and slaves with stores in memory, a coordinator in memory.

Brokers are real except their sockets to clients, which are `Client`s that send frames by hand.
"""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.internet.endpoints import TCP4ClientEndpoint

from tests.support.broker import BrokerInMemory, Peer
from tests.support.ha import HA_PORT, run, virtual_network
from twisted_mq.broker.ha.client import HAClient
from twisted_mq.broker.ordering.agent import OrderAgent
from twisted_mq.coordination.election import Candidate
from twisted_mq.coordination.interfaces import Create
from twisted_mq.coordination.memory import MemoryCoordinator, MemoryEnsemble
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.documents import decode_lists, encode_lists, encode_topic
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.paths import ROOTS, member_path, producers_path, topic_path, unit_path
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.messages.order_mark import OrderMark
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.storage.interfaces import Shut
from twisted_mq.storage.memory.memory_store import MemoryMessageStore

ROLES = {0: "SYNC_MASTER", 1: "SLAVE"}


class OrderedBroker:
    """A broker process on its host `group-id`. `store` and `tables` are those of an earlier one."""

    def __init__(
        self, cluster: Cluster, group: str, broker_id: int, store: Any = None, tables: Any = None, **options: Any
    ) -> None:
        self.cluster = cluster
        self.group = group
        self.broker_id = broker_id
        self.name = f"{group}-{broker_id}"
        self.host = host = cluster.network.host(self.name)
        self.memory = BrokerInMemory(
            clock=host, store=store, tables=tables, broker_name=group, broker_id=broker_id, broker_role=ROLES[broker_id],
            order_coordinator="memory", parts={"port": cluster.port()}, **options,
        )  # fmt: skip
        self.controller = self.memory.controller
        self.store = self.memory.store
        self.registered = 0
        self.coordinator: MemoryCoordinator = cluster.ensemble.coordinator(host)
        self.agent = OrderAgent(self.controller, self.coordinator, cluster.invoke, self._register, host.seconds)
        self.controller.topics.update(cluster.configs)
        self.is_up = True
        host.listenTCP(HA_PORT, self.controller.ha.accept)
        if broker_id:
            self._follow(f"{group}-0")
        self.agent.start()

    def _register(self) -> None:
        self.registered += 1

    def _follow(self, master: str) -> None:
        def endpoint(host: str, port: int) -> TCP4ClientEndpoint:
            return TCP4ClientEndpoint(self.host, host, port, timeout=3)

        controller = self.controller
        client = HAClient(
            self.memory.options, self.store, self.host, endpoint, self.host.callFromThread, controller.dispatch
        )
        controller.ha.follow(client)
        client.update_master_ha_address(f"{master}:{HA_PORT}")
        client.start()

    def kill(self) -> None:
        """SIGKILL: its session ends when its time is over."""
        self.is_up = False
        self.host.kill()
        self.coordinator.link.cut(silently=True)

    def stop(self) -> None:
        """SIGTERM, as far as order goes."""
        self.agent.stop()
        self.cluster.run(0.5)
        self.is_up = False
        self.host.kill()

    def restart(self, lost: int = 0) -> OrderedBroker:
        """Another process goes on with the store; a power cut took so many records at the end of its log."""
        self.cluster.network.boot(self.name)
        store = self.store if not lost else shortened(self.store, lost)
        return self.cluster.start(self.group, self.broker_id, store, self.memory.tables)

    @property
    def log_end(self) -> int:
        return self.store.max_physical_offset()


def shortened(store: Any, lost: int) -> MemoryMessageStore:
    """Return a store with the same log without its last records, which accepts messages."""
    ends = sorted(store._records)
    end = ends[-lost] if lost else store.max_physical_offset()
    shorter = MemoryMessageStore(store.config, lambda: 1_795_217_217_000)
    shorter.start()
    offset = store.min_physical_offset()
    while offset < end:
        piece = bytes(store.read_log(offset, end - offset))
        shorter.append_log(offset, piece)
        offset += len(piece)
    while shorter.dispatch():
        pass
    shorter._replica = None
    shorter.gate.open(Shut.SLAVE)
    return shorter


class Cluster:
    """Groups with both brokers each, and what an operator declared."""

    def __init__(self, *groups: str, seed: int = 1, queues: int = 1, together: bool = False, **options: Any) -> None:
        self.network = virtual_network(seed)
        self.clock = self.network.clock
        self.ensemble = MemoryEnsemble(self.clock)
        self.operator = self.ensemble.coordinator()
        self.topic = OrderedTopic("T", queues, groups, together)
        mode = "together" if together else "queues"
        self.configs = [
            TopicConfig(topic_name="T", read_queue_nums=queues, write_queue_nums=queues, attributes={"order": mode}),
            TopicConfig(topic_name="Plain", read_queue_nums=1, write_queue_nums=1),
        ]
        self.brokers: dict[str, OrderedBroker] = {}
        self._port = 20_000
        self.operator.start()
        self.run(0.1)
        self.declare()
        for group in groups:
            for broker_id in (0, 1):
                self.start(group, broker_id, **options)

    def start(self, group: str, broker_id: int, *more: Any, **options: Any) -> OrderedBroker:
        broker = OrderedBroker(self, group, broker_id, *more, **options)
        self.brokers[broker.name] = broker
        return broker

    def port(self) -> int:
        """Another one for each process."""
        self._port += 1
        return self._port

    def declare(self) -> None:
        path = topic_path("T")
        units = [Create(unit_path("T", unit), encode_lists(Lists())) for unit in self.topic.units]
        self.await_(make_paths(self.operator, ROOTS))
        self.await_(self.operator.commit([Create(path, encode_topic(self.topic)), *units]))

    def run(self, seconds: float, step: float = 0.01) -> None:
        run(self.network, seconds, step)

    def await_(self, work: Any) -> Any:
        """Run a coroutine or Deferred to its end and return the result."""
        results: list[Any] = []
        defer.ensureDeferred(work).addBoth(results.append)
        for _ in range(1000):
            if results:
                break
            self.run(0.01)
        (result,) = results
        if hasattr(result, "raiseException"):
            result.raiseException()
        return result

    def lists(self, unit: str | None = None) -> Lists:
        path = unit_path("T", unit or self.topic.units[0])
        node = self.ensemble.tree[path]
        assert node is not None
        return decode_lists(path, node.data)

    def until(self, holds: Any, seconds: float = 30.0) -> float:
        """Let time pass until that is so; how long it took."""
        began = self.clock.seconds()
        while not holds():
            assert self.clock.seconds() - began < seconds, f"not after {seconds} s: {self.lists()}"
            self.run(0.05)
        return self.clock.seconds() - began

    def until_head(self, group: str | None) -> float:
        return self.until(lambda: self.lists().head == group)

    def until_taken(self, group: str) -> float:
        """Until the group's master knows that it takes sends."""
        unit = self.brokers[f"{group}-0"].agent.units.get(("T", self.topic.units[0]))
        return self.until(lambda: unit is not None and unit.epoch)

    def has_member(self, group: str, broker_id: int) -> bool:
        return self.ensemble.tree[member_path(group, broker_id)] is not None

    def invoke(self, address: str, command: RemotingCommand, timeout: float) -> defer.Deferred[RemotingCommand]:
        broker = next((one for one in self.brokers.values() if one.controller.address == address), None)
        if broker is None or not broker.is_up:
            return defer.fail(RemotingConnectError(address))
        peer = broker.memory.connect()
        peer.send(command)
        return defer.succeed(peer.received()[0])

    def leader(self, group: str = "P", unit: str | None = None) -> int:
        """The term of a producer that begins to lead."""
        found: list[int] = []
        client = self.ensemble.coordinator()
        client.start()
        path = producers_path("T", unit or self.topic.units[0])
        candidate = Candidate(client, path, leads=found.append, lost=lambda: None, name=group)
        candidate.start()
        self.last_candidate, self.last_client = candidate, client
        self.until(lambda: bool(found))
        return found[0]

    def client(self, name: str) -> Client:
        return Client(self, self.brokers[name])


class Client:
    """A connection to one broker."""

    def __init__(self, cluster: Cluster, broker: OrderedBroker) -> None:
        self.cluster = cluster
        self.broker = broker
        self.peer: Peer = broker.memory.connect()
        self.answers: dict[int, RemotingCommand] = {}

    def send(
        self, body: bytes, mark: OrderMark | None = None, *, queue_id: int = 0, group: str = "P", **more: str
    ) -> int:
        """Send; the request's opaque."""
        properties = {"UNIQ_KEY": body.hex()} | ({} if mark is None else {"ORDERED": mark.encode()}) | more
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        fields = {"a": group, "b": "T", "c": "TBW102", "d": "4", "e": str(queue_id), "f": "0", "g": "1", "h": "0", "j": "0",
                  "k": "false", "m": "false", "i": text}  # fmt: skip
        return self.ask(RequestCode.SEND_MESSAGE_V2, fields, body)

    def ask(self, code: int, fields: dict[str, str], body: bytes = b"") -> int:
        return self.peer.send(RemotingCommand(code, body=body, language="JAVA", ext_fields=fields)).opaque

    def answer(self, opaque: int, seconds: float = 0.0) -> RemotingCommand | None:
        """Return the answer after some time, or None."""
        if seconds:
            self.cluster.run(seconds)
        for answer in self.peer.received():
            self.answers[answer.opaque] = answer
        return self.answers.get(opaque)

    def sent(self, body: bytes, mark: OrderMark | None = None, **more: Any) -> RemotingCommand:
        """Send and wait for the answer."""
        answer = self.answer(self.send(body, mark, **more), 0.2)
        assert answer is not None
        return answer

    def pull(
        self,
        offset: int = 0,
        *,
        queue_id: int = 0,
        group: str = "C",
        wait_ms: int = 0,
        topic: str = "T",
        most: int = 32,
    ) -> int:
        """Pull; the request's opaque. Without a wait an empty answer comes at once."""
        fields = {
            "consumerGroup": group, "topic": topic, "queueId": str(queue_id), "queueOffset": str(offset), "maxMsgNums": str(most),
            "sysFlag": "6" if wait_ms else "4", "commitOffset": "0", "suspendTimeoutMillis": str(wait_ms), "subVersion": "0",
            "subscription": "*", "expressionType": "TAG",
        }  # fmt: skip
        return self.ask(RequestCode.PULL_MESSAGE, fields)

    def pulled(self, offset: int = 0, **more: Any) -> tuple[int, int, list[bytes]]:
        """Code, next offset and the bodies of what is there now."""
        answer = self.answer(self.pull(offset, **more))
        assert answer is not None
        return answer.code, int(answer.ext_fields["nextBeginOffset"]), bodies(answer)

    def commit(self, offset: int, *, queue_id: int = 0, group: str = "C", **more: str) -> int:
        """The answer's code; `more` are further fields of the request."""
        fields = {"consumerGroup": group, "topic": "T", "queueId": str(queue_id), "commitOffset": str(offset), **more}
        answer = self.answer(self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields))
        assert answer is not None and (more or answer.code == ResponseCode.SUCCESS)
        return answer.code

    def committed(self, *, queue_id: int = 0, group: str = "C") -> int:
        fields = {"consumerGroup": group, "topic": "T", "queueId": str(queue_id)}
        answer = self.answer(self.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields))
        assert answer is not None and answer.code == ResponseCode.SUCCESS, answer
        return int(answer.ext_fields["offset"])


def bodies(answer: RemotingCommand) -> list[bytes]:
    """Return the bodies of the messages in an answer."""
    return [message.body for message in iterate_messages(answer.body)]
