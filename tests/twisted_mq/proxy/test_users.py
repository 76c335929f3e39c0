"""The secrets of users that a proxy asks brokers for."""

from __future__ import annotations

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.protocol.bodies import AclInfo, UserInfo, encode_body
from twisted_mq.protocol.bodies.auth import PolicyEntryInfo, PolicyInfo
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import Credentials, is_signed
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.fresh import FRESH_SECONDS
from twisted_mq.proxy.rights import of_route
from twisted_mq.proxy.statuses import ProxyError
from twisted_mq.proxy.users import MOST_CHARACTERS, Signatures

OWN = Credentials("inner", "of-the-servers")


class SignatureTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.signatures = Signatures(OWN, self.clock)
        self.signatures.ask = self.ask
        self.users = {"ada": UserInfo("ada", "of-ada"), "bob": UserInfo("bob", "of-bob", user_status="disable")}
        self.asked: list[str] = []

    def ask(self, command: RemotingCommand) -> defer.Deferred[RemotingCommand]:
        name = command.ext_fields["username"]
        self.asked.append(name)
        if name == "refused":
            return defer.succeed(command.answer(ResponseCode.NO_PERMISSION, "no"))
        user = self.users.get(name)
        return defer.succeed(command.answer(body=b"" if user is None else encode_body(user)))

    def secret_of(self, name: str) -> str | None:
        return self.successResultOf(self.signatures.secret_of(name))

    def test_broker_is_asked_once_in_a_while(self) -> None:
        self.assertEqual([self.secret_of("ada"), self.secret_of("ada")], ["of-ada"] * 2)
        self.users["ada"] = UserInfo("ada", "changed")
        self.clock.advance(FRESH_SECONDS)
        self.assertEqual((self.secret_of("ada"), self.asked), ("changed", ["ada", "ada"]))

    def test_unknown_and_disabled_users_have_no_secret(self) -> None:
        self.assertEqual([self.secret_of("eve"), self.secret_of("bob"), self.secret_of("eve")], [None] * 3)
        self.assertEqual(self.asked, ["eve", "bob"])

    def test_no_broker_is_asked_about_blank_and_long_names(self) -> None:
        self.assertEqual([self.secret_of(""), self.secret_of("x" * (MOST_CHARACTERS + 1))], [None, None])
        self.assertEqual(self.asked, [])

    def test_refusal_is_not_remembered(self) -> None:
        for _ in range(2):
            self.failureResultOf(self.signatures.secret_of("refused"), BrokerError)
        self.assertEqual(self.asked, ["refused"] * 2)

    def test_rights_are_those_of_the_policies_that_a_broker_has(self) -> None:
        signatures = Signatures(OWN, self.clock, authorizes=True)
        rule = PolicyEntryInfo("Topic:shop*", ["Pub"], ["10.0.0.1"], "Allow")
        policies = {"User:ada": AclInfo("User:ada", [PolicyInfo("Custom", [rule])])}

        def ask(command: RemotingCommand) -> defer.Deferred[RemotingCommand]:
            if command.code != RequestCode.AUTH_GET_ACL:
                return self.ask(command)
            self.asked.append(command.ext_fields["subject"])
            found = policies.get(command.ext_fields["subject"])
            return defer.succeed(command.answer(body=b"" if found is None else encode_body(found)))

        signatures.ask = ask
        self.users["root"] = UserInfo("root", "of-root", "Super")
        self.users["cid"] = UserInfo("cid", "of-cid")

        def permitted(user: str | None, topic: str, address: str = "10.0.0.1") -> bool:
            client = GrpcClient("id", "PYTHON", (address, 1), b"", self.clock, access_key=user)
            asked = defer.ensureDeferred(signatures.permit(client, of_route(topic)))
            refused = self.successResultOf(asked.addErrback(lambda reason: reason.trap(ProxyError)))
            return refused is None

        self.assertEqual(
            [permitted("ada", "shop"), permitted("ada", "stock"), permitted("ada", "shop", "10.0.0.2")],
            [True, False, False],
        )
        self.assertEqual(
            [permitted("root", "stock"), permitted("cid", "shop"), permitted("eve", "shop"), permitted(None, "shop")],
            [True, False, False, False],
        )
        self.assertEqual(self.asked, ["ada", "User:ada", "root", "cid", "User:cid", "eve"])

    def test_requests_are_signed_by_their_user_and_others_by_the_proxy(self) -> None:
        self.secret_of("ada")
        of_ada = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, {"b": "T"}, b"x")
        self.signatures.sign_as("ada", of_ada)
        self.signatures.complete(of_ada)
        own = RemotingCommand.request(RequestCode.HEART_BEAT, None, b"{}")
        self.signatures.complete(own)
        self.assertEqual((of_ada.ext_fields["AccessKey"], is_signed(of_ada, "of-ada")), ("ada", True))
        self.assertEqual((own.ext_fields["AccessKey"], is_signed(own, OWN.secret_key)), ("inner", True))
