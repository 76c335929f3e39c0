"""Accounts of the cluster at the console: brokers say who comes in, and who may change something."""

from __future__ import annotations

import json

from tests.twisted_mq.console.browser import ConsoleCase
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import CreateAclRequestHeader, CreateUserRequestHeader
from twisted_mq.protocol.wire.signature import Credentials

ROOT, ADA = Credentials("root", "planted-of-root"), Credentials("ada", "planted-of-ada")


class AccountsOfTheCluster(ConsoleCase):
    broker_options = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps({"username": ROOT.access_key, "password": ROOT.secret_key}),
        "inner_client_authentication_credentials": json.dumps({"accessKey": "inner", "secretKey": "planted-of-inner"}),
    }
    console_options = {"accounts": True}

    async def make_ada(self, *actions: str) -> None:
        """A normal user with these rights on the cluster."""
        admin, address = self.console.admin(ROOT), self.cluster.broker_address
        try:
            header = CreateUserRequestHeader(username=ADA.access_key)
            user = UserInfo(ADA.access_key, ADA.secret_key, "Normal")
            await admin.invoke(address, RequestCode.AUTH_CREATE_USER, header, encode_body(user))
            entry = PolicyEntryInfo("Cluster:*", list(actions), None, "Allow")
            subject = f"User:{ADA.access_key}"
            acl = AclInfo(subject, [PolicyInfo("Custom", [entry])])
            header_of_acl = CreateAclRequestHeader(subject=subject)
            await admin.invoke(address, RequestCode.AUTH_CREATE_ACL, header_of_acl, encode_body(acl))
        finally:
            await admin.client.close()

    async def test_who_may_change_the_cluster_is_an_operator_and_others_look(self) -> None:
        await self.make_ada("Get", "List")
        await self.log_in(access_key="root", secret_key=ROOT.secret_key)
        self.assertIn("root operator", (await self.get("/")).words)
        made = await self.submit("/topics/create", name="Made", read_queues=1, write_queues=1, perm=6)
        self.assertIn("Topic Made is created", made.words)
        self.cookie = None
        await self.log_in(access_key="ada", secret_key=ADA.secret_key)
        self.assertIn("ada read only", (await self.get("/")).words)
        self.assertEqual((await self.submit("/topic/delete", name="Made", typed="Made")).status, 403)

    async def test_an_operator_may_choose_only_to_look(self) -> None:
        await self.log_in(access_key="root", secret_key=ROOT.secret_key, read_only="yes")
        self.assertIn("root read only", (await self.get("/")).words)

    async def test_wrong_keys_and_strangers_do_not_come_in_and_no_secret_is_said(self) -> None:
        for access_key, secret_key in (("root", "wrong-secret"), ("nobody", "wrong-secret"), ("root", "")):
            reply = await self.log_in(access_key=access_key, secret_key=secret_key)
            self.assertEqual((reply.status, self.cookie), (403, None))
            self.assertNotIn("wrong-secret", reply.text)
            self.assertNotIn("planted", reply.text)

    async def test_a_broker_that_forbids_what_a_page_asks_says_so(self) -> None:
        await self.make_ada("Get", "List")
        await self.log_in(access_key="ada", secret_key=ADA.secret_key)
        page = await self.get("/topic", name="TBW102")
        self.assertEqual(page.status, 200)
        self.assertIn("Topic:TBW102", page.words)


class AccountOfTheConsole(ConsoleCase):
    """The console's own account keeps the past of the charts; users see that of the brokers that answer them."""

    broker_options = AccountsOfTheCluster.broker_options
    console_options = {"accounts": True, "own_account": ROOT}
    make_ada = AccountsOfTheCluster.make_ada

    async def shown(self, account: Credentials) -> list[str]:
        """The brokers in the newest sample that an account gets."""
        self.cookie = None
        await self.log_in(access_key=account.access_key, secret_key=account.secret_key)
        (sample,) = json.loads((await self.get("/api/history")).text)["samples"]
        return [broker["name"] for broker in sample["brokers"]]

    async def test_the_past_is_kept_by_the_consoles_own_account(self) -> None:
        await self.console._histories[""].take()
        self.assertEqual(await self.shown(ROOT), ["broker-a"])
        await self.make_ada("Get", "List")
        self.assertEqual(await self.shown(ADA), ["broker-a"])
