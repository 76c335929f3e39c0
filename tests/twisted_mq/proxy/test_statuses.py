"""The statuses that answers and failures of brokers become, call by call."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.grpc_client import message
from twisted_mq.protocol.bodies import BrokerData, QueueData, SubscriptionGroupConfig, TopicRouteData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.authentication import Authentication
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.grpc.metadata import CallHead, Metadata
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.service import MessagingService
from twisted_mq.remoting.errors import RemotingConnectError, RemotingTimeoutError, RemotingTooMuchRequestError
from twisted_mq.routing.errors import TopicNotFound

TOPIC, GROUP = {"name": "Orders"}, {"name": "audit"}
HANDLE = "0 9999999999999 60000 0 0 broker-a 0 0 5"
SENT = encode_header(SendMessageResponseHeader(msg_id="7F00000100002A9F0000000000000005", queue_id=0, queue_offset=5))


class ScriptedBrokers:
    """Brokers with one topic. `outcome` is what comes of each request: a response code, or a failure."""

    own = None

    def __init__(self) -> None:
        self.outcome: int | Exception = ResponseCode.SUCCESS
        self.perm = 6
        self.failing_route: Exception | None = None

    def route(self, topic: str) -> defer.Deferred[TopicRouteData]:
        if self.failing_route is not None:
            return defer.fail(self.failing_route)
        queues = QueueData(broker_name="broker-a", read_queue_nums=1, write_queue_nums=1, perm=self.perm)
        broker = BrokerData(cluster="c", broker_name="broker-a", broker_addrs={0: "10.0.0.1:10911"})
        return defer.succeed(TopicRouteData(queue_datas=[queues], broker_datas=[broker]))

    def serves(self, broker_name: str) -> bool:
        return True

    def endpoint_of(self, broker_name: str, address: str) -> tuple[str, int] | None:
        return "10.0.0.1", 8081

    def message_type(self, topic: str) -> defer.Deferred[str]:
        return defer.succeed("MIXED")

    def group(self, group: str, topic: str) -> defer.Deferred[SubscriptionGroupConfig | None]:
        return defer.succeed(None)

    def ask(
        self, client: GrpcClient, broker_name: str, command: RemotingCommand, *_: object
    ) -> defer.Deferred[RemotingCommand]:
        if isinstance(self.outcome, Exception):
            return defer.fail(self.outcome)
        fields = SENT if self.outcome not in FAILURES else {}
        return defer.succeed(command.answer(self.outcome, "said by the broker", dict(fields)))

    def permit(self, client: GrpcClient, wanted: object) -> defer.Deferred[None]:
        return defer.succeed(None)

    def register(self, client: GrpcClient) -> defer.Deferred[None]:
        return defer.succeed(None)

    def unregister(self, client: GrpcClient) -> None: ...


FAILURES: dict[int, str] = {
    ResponseCode.SYSTEM_ERROR: "INTERNAL_SERVER_ERROR",
    ResponseCode.SYSTEM_BUSY: "TOO_MANY_REQUESTS",
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: "NOT_IMPLEMENTED",
    ResponseCode.MESSAGE_ILLEGAL: "INTERNAL_SERVER_ERROR",
    ResponseCode.SERVICE_NOT_AVAILABLE: "INTERNAL_SERVER_ERROR",
    ResponseCode.NO_PERMISSION: "FORBIDDEN",
    ResponseCode.TOPIC_NOT_EXIST: "TOPIC_NOT_FOUND",
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: "ILLEGAL_FILTER_EXPRESSION",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: "CONSUMER_GROUP_NOT_FOUND",
}
STORED: dict[int, str] = {
    ResponseCode.SUCCESS: "OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "MASTER_PERSISTENCE_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "HA_NOT_AVAILABLE",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "SLAVE_PERSISTENCE_TIMEOUT",
}
LOST: list[tuple[Exception, str]] = [
    (RemotingTimeoutError("no answer"), "PROXY_TIMEOUT"),
    (RemotingTooMuchRequestError("too many wait"), "TOO_MANY_REQUESTS"),
    (RemotingConnectError("refused"), "INTERNAL_SERVER_ERROR"),
    (BrokerError(ResponseCode.SYSTEM_BUSY, "busy"), "TOO_MANY_REQUESTS"),
]


class StatusTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.brokers = ScriptedBrokers()
        parts = Parts(ProxyOptions(), self.brokers, self.clock, 4096)  # type: ignore[arg-type]
        self.service = MessagingService(parts, Authentication())
        self.sent: list[Any] = []

    def write(self, call: Call, data: bytes) -> defer.Deferred[None]:
        """Take an answer of a stream, as a connection does."""
        self.sent.append(v2.ReceiveMessageResponse.FromString(data[5:]))
        return defer.succeed(None)

    def confirm(self, call: Call, tell: object) -> None: ...

    def end(self, call: Call, status: object, text: str) -> None: ...

    def asked(self, name: str, **fields: Any) -> Any:
        """Return the answer of a call; the first of a stream."""
        path = f"/{v2.SERVICE}/{name}"
        method = self.service.methods()[path]
        head = CallHead(path, None, "identity", Metadata({b"x-mq-client-id": b"me"}))
        call = Call(1, head, ("10.0.0.9", 1), self.clock, None, self)
        found = self.successResultOf(defer.ensureDeferred(method.handler(call, method.request(**fields))))
        return self.sent.pop(0) if method.gives_stream else found

    def code(self, name: str, **fields: Any) -> str:
        return str(v2.Code.Name(self.asked(name, **fields).status.code))

    def send(self) -> str:
        return self.code("SendMessage", messages=[message("Orders", b"x")])

    def receive(self) -> str:
        client_call = {"group": GROUP, "message_queue": {"topic": TOPIC}, "invisible_duration": {"seconds": 30}}
        self.settle()
        return self.code("ReceiveMessage", long_polling_timeout={"seconds": 5}, **client_call)

    def settle(self) -> None:
        """Make the settings of the consumer known."""
        head = CallHead("/", None, "identity", Metadata({b"x-mq-client-id": b"me"}))
        call = Call(1, head, ("10.0.0.9", 1), self.clock, None, self)
        self.service.clients.settle(call, v2.Settings(subscription={"group": GROUP}), None)

    def each(self) -> list[str]:
        """Each call that asks a broker and has one outcome."""
        place = {"group": GROUP, "topic": TOPIC, "message_id": "M", "receipt_handle": HANDLE}
        queue = {"message_queue": {"topic": TOPIC, "broker": {"name": "broker-a"}}}
        entry = {"message_id": "M", "receipt_handle": HANDLE}
        return [
            self.send(),
            self.receive(),
            self.code("AckMessage", group=GROUP, topic=TOPIC, entries=[entry]),
            self.code("ChangeInvisibleDuration", invisible_duration={"seconds": 30}, **place),
            self.code("ForwardMessageToDeadLetterQueue", **place),
            self.code("UpdateOffset", group=GROUP, offset=1, **queue),
        ]

    def test_refusal_of_a_broker_is_the_status_of_every_call(self) -> None:
        for code, expected in FAILURES.items():
            self.brokers.outcome = code
            self.assertEqual(self.each(), [expected] * 6, code)

    def test_broker_that_cannot_be_reached_is_the_status_of_every_call(self) -> None:
        for failure, expected in LOST:
            self.brokers.outcome = failure
            self.assertEqual(self.each(), [expected] * 6, failure)

    def test_message_that_is_stored_less_safely_than_declared_has_its_status(self) -> None:
        for code, expected in STORED.items():
            self.brokers.outcome = code
            answer = self.asked("SendMessage", messages=[message("Orders", b"x")])
            [entry] = answer.entries
            self.assertEqual([v2.Code.Name(one.status.code) for one in (answer, entry)], [expected] * 2)
            self.assertEqual(bool(entry.message_id), expected == "OK")  # as Apache's: the client sends it again

    def test_full_pop_is_too_many_requests_and_an_empty_one_no_message(self) -> None:
        for code, expected in (
            (ResponseCode.POLLING_FULL, "TOO_MANY_REQUESTS"),
            (ResponseCode.POLLING_TIMEOUT, "MESSAGE_NOT_FOUND"),
            (ResponseCode.PULL_NOT_FOUND, "MESSAGE_NOT_FOUND"),
        ):
            self.brokers.outcome = code
            self.assertEqual(self.receive(), expected)
            self.sent.clear()

    def test_topic_that_is_closed_is_forbidden(self) -> None:
        self.brokers.perm = 4
        self.assertEqual(self.send(), "FORBIDDEN")
        self.brokers.perm = 2
        self.assertEqual(self.receive(), "FORBIDDEN")
        self.assertEqual(self.code("QueryAssignment", topic=TOPIC, group=GROUP), "FORBIDDEN")

    def test_topic_without_a_route_is_not_found(self) -> None:
        self.brokers.failing_route = TopicNotFound("Orders", ["10.0.0.1:9876"])
        found = [self.send(), self.receive(), self.code("QueryRoute", topic=TOPIC)]
        self.assertEqual(found, ["TOPIC_NOT_FOUND"] * 3)

    def test_failure_that_nobody_expects_is_internal_and_logged(self) -> None:
        self.brokers.outcome = RuntimeError("a bug")
        with self.assertLogs("twisted_mq.proxy.service", "CRITICAL"):
            self.assertEqual(self.send(), "INTERNAL_SERVER_ERROR")
        self.flushLoggedErrors(RuntimeError)
