"""The gRPC port with access control on, and with TLS."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.support.access import SECRET
from tests.support.certificates import Authority
from tests.support.grpc_client import ENDPOINTS, GrpcClient, code
from tests.support.proxied_server import MODES, ProxiedServer
from twisted_mq.protocol.bodies import AclInfo, TopicConfig, UserInfo
from twisted_mq.protocol.bodies.auth import PolicyEntryInfo, PolicyInfo
from twisted_mq.proxy import port
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


@pytest.fixture(scope="module", params=list(MODES))
def asking(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    options = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps({"username": "root", "password": SECRET}),
        "inner_client_authentication_credentials": json.dumps(INNER),
    }
    with MODES[request.param](store="memory", broker_options=options) as server:
        if isinstance(server, ProxiedServer):
            names = "authentication_enabled", "authorization_enabled", "inner_client_authentication_credentials"
            server.proxy_options = {name: options[name] for name in names}
        accounts = server._cluster.broker._parts.access.accounts  # type: ignore[union-attr]
        server._thread.call(lambda: accounts.create_user(UserInfo("ada", "of-ada")))
        server._thread.call(lambda: accounts.create_user(UserInfo("bob", "of-bob", user_status="disable")))
        rules = [
            PolicyEntryInfo("Topic:shop*", ["Pub", "Sub"], [], "Allow"),
            PolicyEntryInfo("Topic:read*", ["Sub"], [], "Allow"),
            PolicyEntryInfo("Topic:far*", ["Pub", "Sub"], ["10.9.9.9"], "Allow"),
            PolicyEntryInfo("Group:readers", ["Sub"], [], "Allow"),
        ]
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


FORGED = {
    "rpc-remote-address": "10.9.9.9:5", "rpc-local-address": "10.9.9.9:6", "x-forwarded-for": "10.9.9.9",
    "x-mq-channel-id": "0123456789abcdef", "x-mq-authorization-ak": "root", "x-mq-session-token": "root",
}  # fmt: skip
"""Metadata that Apache's proxy sets itself, and reads as what it knows of the client."""


def test_metadata_of_servers_from_outside_are_not_believed(asking):
    """ada may use topics of this name from 10.9.9.9 only."""
    topic = asking.new_topic("far")
    assert sent(asking, topic, {**signed("ada", "of-ada"), **FORGED}) == "UNAUTHORIZED"
    assert sent(asking, topic, FORGED) == "UNAUTHORIZED"
    assert sent(asking, topic, {**signed("root", SECRET), **FORGED}) == "OK"
    [message] = asking.messages(topic)
    assert message.born_host.partition(":")[0] == message.properties["__BORNHOST"] == "127.0.0.1"


def test_user_may_do_what_policies_allow(asking):
    allowed, other = asking.new_topic("shop"), asking.new_topic("stock")
    ada = signed("ada", "of-ada")
    assert (sent(asking, allowed, ada), sent(asking, other, ada)) == ("OK", "UNAUTHORIZED")
    with GrpcClient(asking.grpc, **ada) as client:
        assert code(client.settle_consumer(allowed, "not-allowed")) == "UNAUTHORIZED"
        given = {"group": {"name": "not-allowed"}, "invisible_duration": {"seconds": 10}}
        received = client.receive_all(message_queue={"topic": {"name": allowed}}, **given)
        assert [code(one) for one in received] in (["UNAUTHORIZED"], ["UNRECOGNIZED_CLIENT_TYPE"])


def test_routes_assignments_and_settings_need_their_rights(asking):
    """A route needs a right to publish or to subscribe, an assignment those of group and topic, as at Apache's proxy."""
    shop, read, far, stock = (asking.new_topic(name) for name in ("shop", "read", "far", "stock"))
    for user, secret, rights in (
        ("root", SECRET, dict.fromkeys((shop, read, far, stock), (True, True, True))),
        (
            "ada",
            "of-ada",
            {shop: (True, True, True), read: (True, True, False), far: (False,) * 3, stock: (False,) * 3},
        ),
    ):
        for topic, expected in rights.items():
            asked = {"topic": {"name": topic}, "endpoints": ENDPOINTS}
            found = []
            for ask in (
                lambda client, asked=asked: client.call("QueryRoute", **asked),
                lambda client, asked=asked: client.call("QueryAssignment", group={"name": "readers"}, **asked),
                lambda client, topic=topic: client.settle_producer(topic),
            ):
                with GrpcClient(asking.grpc, **signed(user, secret)) as client:
                    found.append(code(ask(client)))
            assert found == ["OK" if one else "UNAUTHORIZED" for one in expected], (user, topic)
    with GrpcClient(asking.grpc, **signed("ada", "of-ada")) as client:
        asked = {"topic": {"name": shop}, "endpoints": ENDPOINTS}
        assert code(client.call("QueryAssignment", group={"name": "others"}, **asked)) == "UNAUTHORIZED"
        assert code(client.settle_consumer(read, "readers")) == "OK"
    with GrpcClient(asking.grpc, **signed("ada", "of-ada")) as client:
        assert code(client.settle_consumer(stock, "readers")) == "UNAUTHORIZED"


def test_client_id_of_another_user_is_refused(asking):
    topic = asking.new_topic("shop")
    with GrpcClient(asking.grpc, **signed("root", SECRET)) as client:
        assert code(client.settle_producer(topic)) == "OK"
        with GrpcClient(asking.grpc, client.client_id, **signed("ada", "of-ada")) as thief:
            assert code(thief.send(topic, b"x")) == "UNAUTHORIZED"
            assert code(thief.settle_producer(topic)) == "UNAUTHORIZED"
        assert code(client.send(topic, b"y")) == "OK"
    assert [one.body for one in asking.messages(topic)] == [b"y"]


def test_transaction_of_a_user_is_committed(asking):
    topic = asking.new_topic("shop")
    config = TopicConfig(topic, 4, 4, attributes={"message.type": "TRANSACTION"})
    asking._thread.call(lambda: asking._controller.topics.update([config]))
    with GrpcClient(asking.grpc, **signed("ada", "of-ada")) as client:
        client.settle_producer(topic)
        entry = client.send(topic, b"x", message_type=4).entries[0]
        ended = client.call(
            "EndTransaction", topic={"name": topic}, message_id=entry.message_id, transaction_id=entry.transaction_id,
            resolution=1, source=1,
        )  # fmt: skip
        assert code(ended) == "OK"
    assert [one.body for one in asking.messages(topic)] == [b"x"]


def test_every_call_is_asked_who_it_is(asking):
    with GrpcClient(asking.grpc) as nobody:
        for name in (
            "QueryRoute", "QueryAssignment", "Heartbeat", "SendMessage", "AckMessage", "EndTransaction", "RecallMessage",
            "ForwardMessageToDeadLetterQueue", "ChangeInvisibleDuration", "NotifyClientTermination",
            "UpdateOffset", "GetOffset", "QueryOffset",
        ):  # fmt: skip
            assert code(nobody.call(name)) == "UNAUTHORIZED", name
        assert [code(one) for one in nobody.receive_all()] == ["UNAUTHORIZED"]
        assert [code(one) for one in nobody.pull_all()] == ["UNAUTHORIZED"]
        assert code(nobody.settle_producer("shop")) == "UNAUTHORIZED"


def shown_by(address: str) -> tuple[str | None, bytes]:
    """Return the protocol that a port agrees to, and its certificate as PEM."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection((host, int(port))) as raw, context.wrap_socket(raw) as secured:
        shown = secured.getpeercert(binary_form=True)
        return secured.selected_alpn_protocol(), ssl.DER_cert_to_PEM_cert(shown or b"").encode()


@pytest.mark.parametrize("mode", list(MODES))
def test_certificate_that_is_renewed_is_shown_without_a_restart(mode, tmp_path, monkeypatch):
    monkeypatch.setattr(port, "LOOK_SECONDS", 0.05)
    authority = Authority(tmp_path)
    files = authority.issue("ours")
    named = {"tls_server_cert_path": files.certificate, "tls_server_key_path": files.key}
    with MODES[mode](store="memory", broker_options={} if mode == "cluster" else named) as server:
        if isinstance(server, ProxiedServer):
            server.proxy_options = {"tls_cert_path": files.certificate, "tls_key_path": files.key}
        first = shown_by(server.grpc)[1]
        assert first == Path(files.certificate).read_bytes()
        authority.issue("ours")
        end = time.monotonic() + 30
        while (shown := shown_by(server.grpc)[1]) == first and time.monotonic() < end:
            time.sleep(0.05)
        assert shown == Path(files.certificate).read_bytes() != first


def test_plain_text_and_tls_share_the_port_and_alpn_is_h2():
    with EmbeddedServer(store="memory") as server:
        topic = server.new_topic("tls")
        protocol, certificate = shown_by(server.grpc)
        assert protocol == "h2"
        credentials = grpc.ssl_channel_credentials(root_certificates=certificate)
        with GrpcClient(server.grpc, credentials=credentials) as client:
            assert code(client.send(topic, b"x")) == "OK"
            assert code(client.call("QueryRoute", topic={"name": topic}, endpoints=ENDPOINTS)) == "OK"
        with GrpcClient(server.grpc) as client:
            assert code(client.send(topic, b"y")) == "OK"
        assert [one.body for one in server.messages(topic)] == [b"x", b"y"]
