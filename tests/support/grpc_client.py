"""A client of the messaging service for tests, on grpcio: one method for each call, Telemetry in the background."""

from __future__ import annotations

import itertools
import queue
import threading
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import grpc

from twisted_mq.proxy import messages as v2

ENDPOINTS = {"scheme": 1, "addresses": [{"host": "127.0.0.1", "port": 8081}]}
_numbers = itertools.count()


class GrpcClient:
    """A client of one address. `told` holds the TelemetryCommands that came, without answers to settings."""

    def __init__(self, address: str, client_id: str | None = None, *, credentials: Any = None, **metadata: str) -> None:
        self.client_id = client_id or f"test@1@{next(_numbers)}@{uuid.uuid4().hex[:6]}"
        options = [("grpc.max_receive_message_length", -1), ("grpc.ssl_target_name_override", "localhost")]
        if credentials is None:
            self.channel = grpc.insecure_channel(address, options=options)
        else:
            self.channel = grpc.secure_channel(address, credentials, options=options)
        given = {
            "x-mq-client-id": self.client_id,
            "x-mq-language": "PYTHON",
            "x-mq-client-version": "5.1.2",
            **metadata,
        }
        self.metadata = [(name.replace("_", "-"), value) for name, value in given.items() if value]
        self.settings: queue.Queue[Any] = queue.Queue()
        self.told: queue.Queue[Any] = queue.Queue()
        self._commands: queue.Queue[Any] = queue.Queue()
        self.telemetry: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._commands.put(None)
        self.channel.close()

    def call(self, name: str, timeout: float = 20.0, **fields: Any) -> Any:
        """A unary call; returns its answer."""
        request, answer, _, _ = v2.METHODS[name]
        call = self.channel.unary_unary(
            f"/{v2.SERVICE}/{name}", v2.message_class(request).SerializeToString, v2.message_class(answer).FromString
        )
        return call(v2.message_class(request)(**fields), timeout=timeout, metadata=self.metadata)

    def receive_all(self, timeout: float = 20.0, **fields: Any) -> list[Any]:
        """ReceiveMessage; all that it streams."""
        return list(self.receiving(timeout, **fields))

    def receiving(self, timeout: float | None = 20.0, **fields: Any) -> Any:
        """The same while it streams."""
        call = self.channel.unary_stream(
            f"/{v2.SERVICE}/ReceiveMessage",
            v2.ReceiveMessageRequest.SerializeToString,
            v2.ReceiveMessageResponse.FromString,
        )
        return call(v2.ReceiveMessageRequest(**fields), timeout=timeout, metadata=self.metadata)

    def pull_all(self, timeout: float = 20.0, **fields: Any) -> list[Any]:
        """PullMessage; all that it streams."""
        return list(self.pulling(timeout, **fields))

    def pulling(self, timeout: float, **fields: Any) -> Any:
        """The same while it streams."""
        call = self.channel.unary_stream(
            f"/{v2.SERVICE}/PullMessage", v2.PullMessageRequest.SerializeToString, v2.PullMessageResponse.FromString
        )
        return call(v2.PullMessageRequest(**fields), timeout=timeout, metadata=self.metadata)

    def receive(self, topic: str, group: str, timeout: float = 20.0, **fields: Any) -> list[Any]:
        """Messages of one ReceiveMessage."""
        asked = {
            "batch_size": 32,
            "invisible_duration": {"seconds": 30},
            "filter_expression": {"expression": "*"},
            **fields,
        }
        answers = self.receive_all(timeout, group={"name": group}, message_queue={"topic": {"name": topic}}, **asked)
        return [one.message for one in answers if one.WhichOneof("content") == "message"]

    # Telemetry

    def settle(self, **settings: Any) -> Any:
        """Open Telemetry if need be, send settings, wait for the answer."""
        if self.telemetry is None:
            call = self.channel.stream_stream(
                f"/{v2.SERVICE}/Telemetry", v2.TelemetryCommand.SerializeToString, v2.TelemetryCommand.FromString
            )
            self.telemetry = call(iter(self._commands.get, None), metadata=self.metadata)
            threading.Thread(target=self._read, args=(self.telemetry,), daemon=True).start()
        self.tell(settings=settings)
        answer = self.settings.get(timeout=20)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell(self, **command: Any) -> None:
        """Send a TelemetryCommand."""
        self._commands.put(v2.TelemetryCommand(**command))

    def _read(self, stream: Iterator[Any]) -> None:
        try:
            for command in stream:
                settles = command.WhichOneof("command") in ("settings", None)
                (self.settings if settles else self.told).put(command)
        except grpc.RpcError as error:
            self.settings.put(error)

    def settle_producer(self, *topics: str) -> Any:
        """Settings of a producer."""
        return self.settle(client_type=v2.ClientType.PRODUCER, publishing={"topics": [{"name": one} for one in topics]})

    def settle_consumer(
        self, topic: str, group: str, expression: str = "*", client_type: str = "SIMPLE_CONSUMER"
    ) -> Any:
        """Settings of a consumer."""
        entry = {"topic": {"name": topic}, "expression": {"type": 1, "expression": expression}}
        return self.settle(
            client_type=v2.ClientType.Value(client_type),
            request_timeout={"seconds": 3},
            subscription={"group": {"name": group}, "subscriptions": [entry]},
        )

    def send(self, topic: str, *bodies: bytes, **system: Any) -> Any:
        """SendMessage with message ids of its own."""
        return self.call("SendMessage", messages=[message(topic, body, **system) for body in bodies])


def message(topic: str, body: bytes, user_properties: dict[str, str] | None = None, **system: Any) -> Any:
    """A message with an id of its own."""
    system.setdefault("message_id", f"01{uuid.uuid4().hex.upper()}")
    return v2.Message(topic={"name": topic}, body=body, user_properties=user_properties or {}, system_properties=system)


def code(answer: Any) -> str:
    """The name of its status."""
    return str(v2.Code.Name(answer.status.code))
