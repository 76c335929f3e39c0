"""Apache's Java and C++ clients as objects: producers, push and pull consumers, mqadmin."""

from __future__ import annotations

import base64
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from interop.peers.line_peer import LinePeer, Promise, Record
from interop.peers.process import PATIENCE_SECONDS, wait_until
from interop.peers.servers import BROKER_NAME
from interop.peers.toolchain import compile_programs, java_command

PROJECT = Path(__file__).resolve().parents[2]


def unique(prefix: str) -> str:
    """A name that no other test uses: topics, groups and instances stay apart on a shared broker."""
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


def flat(lists: Iterable[Iterable[Any]]) -> list[Any]:
    return [item for items in lists for item in items]


def bodies(messages: list[Record]) -> list[str]:
    return [message["body"] for message in messages]


@attrs.define(eq=False)
class Producer:
    """A started producer of a peer program."""

    peer: LinePeer
    name: str

    def send(self, topic: str, body: str, **fields: Any) -> Record:
        return self.peer.request("send", producer=self.name, topic=topic, body=body, **fields)

    def send_all(self, topic: str, texts: list[str], **fields: Any) -> list[Record]:
        """Send one message after the other; they go round the topic's queues."""
        return self.command("send_all", messages=[{"topic": topic, "body": text, **fields} for text in texts])

    def command(self, command: str, **fields: Any) -> Any:
        return self.peer.request(command, producer=self.name, **fields)

    def stop(self) -> None:
        self.peer.request("stop", name=self.name)


@attrs.define(eq=False)
class TransactionProducer(Producer):
    """A producer whose messages say what it decides: "commit", "rollback" or nothing."""

    def begin(self, topic: str, body: str, local: str = "", check: str = "", **properties: str) -> Record:
        """Send a half message; `local` is decided at once, `check` when the broker asks."""
        decisions = {"local": local, "check": check, **properties}
        given = {name: value for name, value in decisions.items() if value}
        return self.command("send_in_transaction", topic=topic, body=body, properties=given)

    def wait_checks(self, promise: Promise, seconds: float = PATIENCE_SECONDS) -> list[Record]:
        """The messages that the broker asked about, once they keep a promise."""
        return self.peer.wait_events("check", self.name, promise, seconds)


@attrs.define(eq=False)
class PushConsumer:
    """A started push consumer of a peer program; `messages` are those it took and acknowledged."""

    peer: LinePeer
    name: str
    topic: str

    @property
    def messages(self) -> list[Record]:
        return self.peer.events("message", self.name)

    @property
    def refused(self) -> list[Record]:
        return self.peer.events("refused", self.name)

    def wait_bodies(self, expected: set[str], seconds: float = PATIENCE_SECONDS) -> list[Record]:
        """All messages taken, once every expected body is among them."""
        return self.wait(lambda messages: expected <= set(bodies(messages)), seconds)

    def wait(self, promise: Promise, seconds: float = PATIENCE_SECONDS) -> list[Record]:
        return self.peer.wait_events("message", self.name, promise, seconds)

    def assigned(self) -> list[int]:
        """Ids of the queues of its topic that it owns now."""
        return self.peer.request("assigned", consumer=self.name, topic=self.topic)

    def stop(self) -> None:
        """Shut down; a clean shutdown stores offsets and tells the broker."""
        self.peer.request("stop", name=self.name)


@attrs.define(eq=False)
class PopConsumer(PushConsumer):
    """A push consumer whose queues the broker divides; "refuse..." and "hold..." are not acknowledged at first."""

    @property
    def held(self) -> list[Record]:
        """Messages that were kept for longer than they stayed invisible."""
        return self.peer.events("held", self.name)

    def popped(self) -> list[int]:
        """Ids of the queues that it pops, -1 for all of a broker."""
        return self.peer.request("popped_queues", consumer=self.name)


@attrs.define(eq=False)
class PullConsumer:
    """A started pull consumer of a peer program."""

    peer: LinePeer
    name: str

    def command(self, command: str, topic: str, queue_id: int = 0, **fields: Any) -> Any:
        return self.peer.finish(self.begin(command, topic, queue_id, **fields))

    def begin(self, command: str, topic: str, queue_id: int = 0, **fields: Any) -> int:
        """Start a command that may wait on the broker; `peer.finish` takes its result."""
        queue = {"topic": topic, "broker_name": BROKER_NAME, "queue_id": queue_id}
        return self.peer.begin(command, consumer=self.name, **queue, **fields)

    def stop(self) -> None:
        self.peer.request("stop", name=self.name)


@attrs.define(eq=False)
class LitePullConsumer:
    """A started consumer that is polled; commands on a queue take its id."""

    peer: LinePeer
    name: str
    topic: str

    def command(self, command: str, queue_id: int = 0, **fields: Any) -> Any:
        queue = {"topic": self.topic, "broker_name": BROKER_NAME, "queue_id": queue_id}
        return self.peer.request(command, consumer=self.name, **queue, **fields)

    def poll_bodies(self, expected: set[str], seconds: float = PATIENCE_SECONDS) -> list[Record]:
        """Poll until every expected body was received, and return all bodies. Raises PeerFailed."""
        messages: list[Record] = []

        def complete() -> bool:
            messages.extend(self.command("poll", timeout_ms=1000))
            return expected <= set(bodies(messages))

        wait_until(complete, f"{self.name} polls all messages", seconds)
        return messages

    def stop(self) -> None:
        self.peer.request("stop", name=self.name)


@attrs.define(eq=False)
class Clients:
    """Makes clients inside one peer program, all for one name server, and stops at the end what is left."""

    peer: LinePeer
    name_server: str
    _started: list[Producer | PushConsumer | PullConsumer | LitePullConsumer] = attrs.field(factory=list)

    def producer(self, group: str | None = None, **options: Any) -> Producer:
        return self._keep(Producer(self.peer, self._start("producer", group or unique("producer"), **options)))

    def push_consumer(self, group: str, topic: str, tags: str = "*", **options: Any) -> PushConsumer:
        name = self._start("push_consumer", group, topic=topic, tags=tags, **options)
        return self._keep(PushConsumer(self.peer, name, topic))

    def pop_consumer(self, group: str, topic: str, tags: str = "*", invisible_ms: int = 60_000) -> PopConsumer:
        name = self._start("pop_consumer", group, topic=topic, tags=tags, invisible_ms=invisible_ms)
        return self._keep(PopConsumer(self.peer, name, topic))

    def transaction_producer(self, group: str) -> TransactionProducer:
        return self._keep(TransactionProducer(self.peer, self._start("transaction_producer", group)))

    def answering_consumer(self, group: str, topic: str) -> PushConsumer:
        """A consumer that replies to what it takes; its `reply` events are the results of the sends."""
        return self._keep(PushConsumer(self.peer, self._start("answering_consumer", group, topic=topic), topic))

    def pull_consumer(self, group: str) -> PullConsumer:
        return self._keep(PullConsumer(self.peer, self._start("pull_consumer", group)))

    def lite_pull_consumer(self, group: str, topic: str, **options: Any) -> LitePullConsumer:
        """`queue_ids` chooses queues; without them rebalance does, for the subscription by `tags` or `sql`."""
        name = self._start("lite_pull_consumer", group, topic=topic, broker_name=BROKER_NAME, **options)
        return self._keep(LitePullConsumer(self.peer, name, topic))

    def stop(self) -> None:
        """Stop all of them side by side; stopping a stopped one is harmless."""
        for number in [self.peer.begin("stop", name=client.name) for client in self._started]:
            self.peer.finish(number)
        self._started.clear()

    def _start(self, kind: str, group: str, **options: Any) -> str:
        arguments = {"name": unique(kind), "group": group, "name_server": self.name_server, **options}
        return self.peer.request(kind, **arguments)

    def _keep(self, client: Any) -> Any:
        self._started.append(client)
        return client


class JavaPeer(LinePeer):
    """A virtual machine with Apache's Java client and mqadmin."""

    def __init__(self, directory: Path) -> None:
        home = directory / "java-home"
        home.mkdir()
        super().__init__(java_command(home, "256m", "Peer", classes=compile_programs()), directory, "java-peer")

    def mqadmin(self, *arguments: str, interrupt_after_ms: int | None = None, **credentials: str) -> str:
        """Return the output of an mqadmin command, followed by its errors; commands without an end are interrupted."""
        more = credentials if interrupt_after_ms is None else {"interrupt_after_ms": interrupt_after_ms, **credentials}
        printed = self.request("mqadmin", args=list(arguments), **more)
        return printed["out"] + printed["err"]

    def monitor(self, name_server: str) -> list[str]:
        """Return the report of one round of startMonitoring."""
        return self.request("monitor", name_server=name_server)

    def invoke(self, address: str, code: int, fields: dict[str, str], body: bytes = b"") -> Record:
        """The answer (code, remark, fields, body) to one request, sent without the client's own checks."""
        encoded = base64.b64encode(body).decode()
        return self.request("invoke", address=address, code=code, fields=fields, body=encoded)


class OurPeer(LinePeer):
    """A child interpreter with this project's client library in it."""

    def __init__(self, directory: Path) -> None:
        super().__init__([sys.executable, "-m", "interop.peers.our_program"], directory, "our-peer", start_in=PROJECT)

    def mqadmin(self, *arguments: str, directory: Path, interrupt_after_ms: int = 60_000) -> Record:
        """Run a command of our admin tool in a directory; return its output (out), and the reason of a failure (err)."""
        return self.request(
            "mqadmin", args=list(arguments), directory=str(directory), most_seconds=interrupt_after_ms / 1000
        )


class CppPeer(LinePeer):
    """A child interpreter with Apache's C++ client in it: the library may end its process at any time."""

    def __init__(self, directory: Path) -> None:
        home = directory / unique("cpp-home")
        home.mkdir()
        command = [sys.executable, str(PROJECT / "interop" / "peers" / "cpp_program.py")]
        super().__init__(command, home, "cpp-peer", {"HOME": str(home), "PATH": "/usr/bin:/bin"})
