"""Logins, and protection from other users."""

from __future__ import annotations

from twisted.web._newclient import RequestTransmissionFailed
from twisted.web.client import ResponseNeverReceived

from tests.twisted_mq.console.browser import ConsoleCase
from twisted_mq.console.app import CONTENT_SECURITY_POLICY, HEADERS
from twisted_mq.console.routes import NAVIGATION, ROUTES
from twisted_mq.console.service import MOST_FORM_BYTES
from twisted_mq.console.sessions import FREE_FAILURES, Role


def test_what_changes_something_is_a_form_and_for_operators():
    changing = {
        "/topics/create",
        "/topic/change",
        "/topic/delete",
        "/topic/send",
        "/groups/create",
        "/group/configure",
        "/group/delete",
        "/group/reset",
        "/dead-letters/resend",
        "/dead-letters/stop",
        "/broker/setting",
        "/broker/writing",
        "/message/consume",
        "/access/user/create",
        "/access/user/change",
        "/access/user/delete",
        "/access/grant",
        "/access/revoke",
    }
    assert {route.path for route in ROUTES if route.method == "POST"} == changing
    assert {route.needs for route in ROUTES if route.method == "POST"} == {Role.OPERATOR}
    assert {route.needs for route in ROUTES if route.method == "GET"} == {Role.READER}


def test_the_menu_leads_to_pages():
    assert {entry.path for entry in NAVIGATION} <= {route.path for route in ROUTES if route.method == "GET"}


class ByToken(ConsoleCase):
    async def test_strangers_see_the_form_alone(self) -> None:
        for route in ROUTES:
            reply = await self.ask(route.method, route.path, b"" if route.method == "POST" else None)
            expected = (401, None) if route.path.startswith("/api/") else (303, "/login")
            self.assertEqual((reply.status, reply.header("location")), expected, route.path)
        self.assertEqual((await self.get("/login")).status, 200)

    async def test_a_token_lets_one_person_in_and_is_nowhere_in_an_address(self) -> None:
        token = self.token
        self.assertTrue(self.invitations[0].startswith(f"{self.console.url}login#"))
        reply = await self.log_in()
        self.assertEqual((reply.status, reply.header("location")), (303, "/"))
        cookie = reply.header("set-cookie") or ""
        self.assertIn("HttpOnly", cookie)
        self.assertIn("SameSite=strict", cookie)
        self.assertNotIn(token, cookie)
        self.assertEqual((await self.get("/")).status, 200)
        self.assertEqual(len(self.invitations), 2)
        self.cookie = None
        again = await self.log_in(token=token)
        self.assertEqual(again.status, 403)
        self.assertIn("This token is not valid", again.words)
        self.assertEqual((await self.ask("GET", f"/login?token={self.token}")).status, 200)
        self.assertIsNone((await self.ask("GET", f"/login?token={self.token}")).header("set-cookie"))

    async def test_wrong_tokens_wait_longer_each_time_and_the_right_one_never(self) -> None:
        for _ in range(FREE_FAILURES):
            self.assertIn("This token is not valid", (await self.log_in(token="guess")).words)
        late = [await self.log_in(token="guess") for _ in range(12)]
        self.assertEqual({reply.status for reply in late}, {403})
        self.assertTrue(any("Too many attempts from 127.0.0.1 failed" in reply.words for reply in late))
        self.assertEqual((await self.log_in()).status, 303)

    async def test_logging_out_ends_the_session(self) -> None:
        await self.log_in()
        cookie = self.cookie
        await self.submit("/logout")
        self.cookie = cookie
        self.assertEqual((await self.get("/")).status, 303)

    async def test_each_answer_has_the_headers_that_keep_pages_apart(self) -> None:
        await self.log_in()
        for path in ("/", "/topics", "/login", "/nothing", "/static/nothing", "/broker", "/api/figures"):
            reply = await self.get(path)
            self.assertEqual({name: reply.header(name.decode()) for name in HEADERS},
                             {name: value.decode() for name, value in HEADERS.items()}, path)  # fmt: skip
        self.assertNotIn("unsafe", CONTENT_SECURITY_POLICY)
        self.assertEqual((await self.get("/static/console.css")).header("x-content-type-options"), "nosniff")

    async def test_forms_without_this_sessions_key_change_nothing(self) -> None:
        await self.log_in()
        key = (await self.get("/")).form_key
        form = {"name": "Made", "read_queues": 1, "write_queues": 1, "perm": 6}
        for fields, headers in (
            (form, {}),
            ({**form, "form_key": "wrong"}, {}),
            ({**form, "form_key": key}, {"origin": "http://evil.example"}),
            ({**form, "form_key": key}, {"origin": "null"}),
            ({**form, "form_key": key}, {"sec_fetch_site": "cross-site"}),
        ):
            self.assertEqual((await self.post("/topics/create", fields, **headers)).status, 403)
        self.assertNotIn("Made", self.cluster.broker.controller.topics.topics)
        good = await self.post("/topics/create", {**form, "form_key": key}, origin=self.console.url.rstrip("/"))
        self.assertEqual(good.status, 303)
        self.assertIn("Made", self.cluster.broker.controller.topics.topics)

    async def test_another_name_of_this_machine_is_a_strangers_page(self) -> None:
        await self.log_in()
        for host, status in (("evil.example", 403), ("127.0.0.1.evil.example:80", 403), ("localhost:1", 200)):
            self.assertEqual((await self.ask("GET", "/", host=host)).status, status, host)

    async def test_tricks_with_paths_lead_nowhere(self) -> None:
        for path in (
            "/static/../app.py",
            "/static/%2e%2e/app.py",
            "/static/..%2fapp.py",
            "/static/",
            "/%ff",
            "//etc/passwd",
        ):
            self.assertEqual((await self.ask("GET", path)).status, 404, path)

    async def test_a_form_that_is_too_long_is_cut_off(self) -> None:
        with self.assertRaises((RequestTransmissionFailed, ResponseNeverReceived)):
            await self.ask("POST", "/login", b"x" * (MOST_FORM_BYTES + 1))


class ToLookAlone(ConsoleCase):
    console_options = {"read_only": True}

    async def test_pages_are_there_and_forms_are_refused(self) -> None:
        await self.log_in()
        self.assertIn("read only", (await self.get("/")).words)
        self.assertNotIn("New topic", (await self.get("/topics")).words)
        reply = await self.submit("/topics/create", name="Made")
        self.assertEqual(reply.status, 403)
        self.assertIn("Read only", reply.words)


class ByAccount(ConsoleCase):
    console_options = {"accounts": True}

    async def test_brokers_without_accounts_let_nobody_in(self) -> None:
        reply = await self.log_in(access_key="who", secret_key="ever-it-is")
        self.assertEqual(reply.status, 403)
        self.assertIn("The brokers have no accounts", reply.words)
        self.assertEqual((await self.log_in(token="")).status, 403)
        self.assertEqual(self.invitations, [self.console.url])
