"""The gRPC port with access control on, and with TLS."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import ssl
from collections.abc import Iterator

import grpc
import pytest

from tests.support.access import SECRET
from tests.support.grpc_client import ENDPOINTS, GrpcClient, code
from twisted_mq.protocol.bodies import AclInfo, UserInfo
from twisted_mq.protocol.bodies.auth import PolicyEntryInfo, PolicyInfo
from twisted_mq.testing import EmbeddedServer

NOW = "20261123T220000Z"
INNER = {"accessKey": "inner", "secretKey": "of-the-servers"}


def signed(user: str, secret: str) -> dict[str, str]:
    """The metadata that a client with these credentials sends."""
    signature = hmac.digest(secret.encode(), NOW.encode(), hashlib.sha1).hex().upper()
    return {
        "x-mq-date-time": NOW,
        "authorization": f"MQv2-HMAC-SHA1 Credential={user}, SignedHeaders=x-mq-date-time, Signature={signature}",
    }


@pytest.fixture(scope="module")
def asking() -> Iterator[EmbeddedServer]:
    options = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps({"username": "root", "password": SECRET}),
        "inner_client_authentication_credentials": json.dumps(INNER),
    }
    with EmbeddedServer(store="memory", broker_options=options) as server:
        accounts = server._cluster.broker._access.accounts  # type: ignore[union-attr]
        server._thread.call(lambda: accounts.create_user(UserInfo("ada", "of-ada")))
        server._thread.call(lambda: accounts.create_user(UserInfo("bob", "of-bob", user_status="disable")))
        rules = [PolicyEntryInfo("Topic:shop*", ["Pub", "Sub"], [], "Allow")]
        policy = AclInfo("User:ada", [PolicyInfo("Custom", rules)])
        server._thread.call(lambda: accounts.put_policies("User:ada", policy))
        yield server


def sent(server: EmbeddedServer, topic: str, metadata: dict[str, str]) -> str:
    with GrpcClient(server.grpc, **metadata) as client:
        return code(client.send(topic, b"x"))


def test_super_user_may_send_and_what_is_not_signed_rightly_is_unauthorized(asking):
    topic = asking.new_topic("any")
    assert sent(asking, topic, signed("root", SECRET)) == "OK"
    nobody = {"authorization": "MQv2-HMAC-SHA1 Credential=, SignedHeaders=x-mq-date-time, Signature="}
    for metadata in (
        {},
        nobody,
        {"authorization": "Basic x"},
        signed("root", "guess"),
        signed("eve", ""),
        signed("bob", "of-bob"),
    ):
        assert sent(asking, topic, metadata) == "UNAUTHORIZED", metadata
    assert len(asking.messages(topic)) == 1


def test_user_may_do_what_policies_allow(asking):
    allowed, other = asking.new_topic("shop"), asking.new_topic("stock")
    ada = signed("ada", "of-ada")
    assert (sent(asking, allowed, ada), sent(asking, other, ada)) == ("OK", "UNAUTHORIZED")
    with GrpcClient(asking.grpc, **ada) as client:
        answers = client.settle_consumer(allowed, "not-allowed")
        assert code(answers) == "UNAUTHORIZED"


def test_every_call_is_asked_who_it_is(asking):
    with GrpcClient(asking.grpc) as nobody:
        for name in (
            "QueryRoute", "QueryAssignment", "Heartbeat", "SendMessage", "AckMessage", "EndTransaction", "RecallMessage",
            "ForwardMessageToDeadLetterQueue", "ChangeInvisibleDuration", "NotifyClientTermination",
        ):  # fmt: skip
            assert code(nobody.call(name)) == "UNAUTHORIZED", name
        assert [code(one) for one in nobody.receive_all()] == ["UNAUTHORIZED"]
        assert code(nobody.settle_producer("shop")) == "UNAUTHORIZED"


def test_plain_text_and_tls_share_the_port_and_alpn_is_h2():
    with EmbeddedServer(store="memory") as server:
        topic = server.new_topic("tls")
        host, _, port = server.grpc.rpartition(":")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        with socket.create_connection((host, int(port))) as raw, context.wrap_socket(raw) as secured:
            assert secured.selected_alpn_protocol() == "h2"
            shown = secured.getpeercert(binary_form=True)
        certificate = ssl.DER_cert_to_PEM_cert(shown or b"").encode()
        credentials = grpc.ssl_channel_credentials(root_certificates=certificate)
        with GrpcClient(server.grpc, credentials=credentials) as client:
            assert code(client.send(topic, b"x")) == "OK"
            assert code(client.call("QueryRoute", topic={"name": topic}, endpoints=ENDPOINTS)) == "OK"
        with GrpcClient(server.grpc) as client:
            assert code(client.send(topic, b"y")) == "OK"
        assert [one.body for one in server.messages(topic)] == [b"x", b"y"]
