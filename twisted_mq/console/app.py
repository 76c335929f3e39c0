"""Serves the pages over HTTP: checks requests, sets the headers of each answer, and shows failures."""

from __future__ import annotations

import hmac
import json
import urllib.parse
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import attrs
from klein import Klein
from klein.resource import KleinResource
from twisted.web.http import Request
from werkzeug.exceptions import HTTPException

from twisted_mq.admin.calls import NoNameServer
from twisted_mq.admin.errors import AdminError
from twisted_mq.console.answers import Answer, BadInput, Download, JsonValue, NotThere, Page, Redirect
from twisted_mq.console.forms import said
from twisted_mq.console.history import History
from twisted_mq.console.jobs import Jobs
from twisted_mq.console.login import Login, LoginRefused
from twisted_mq.console.prometheus import PrometheusHistory
from twisted_mq.console.rendering import STATIC, Rendering, static_files
from twisted_mq.console.routes import NAVIGATION, ROUTES, Route
from twisted_mq.console.sessions import ConsoleSessions, Role, Session, new_secret
from twisted_mq.console.settings import LOOPBACK, ConsoleSettings
from twisted_mq.console.visit import Visit
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RocketMQError
from twisted_mq.remoting.errors import RemotingError

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    # not no-referrer, because forms would then come with the origin "null"
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
LOCAL_HOSTS = {"127.0.0.1", "localhost", "[::1]"}
"""Names under which a console on the loopback answers. Under any other name, a stranger's page changed its own name's address."""

FAILURES = (AdminError, RocketMQError)
"""The errors that servers and the network can raise in a page."""


@attrs.frozen
class Failed:
    """A failure as a page shows it."""

    status: int
    title: str
    text: str
    advice: str = ""


class ConsoleApp:
    """The pages of one console."""

    log = Logger()

    def __init__(
        self,
        settings: ConsoleSettings,
        sessions: ConsoleSessions,
        login: Login,
        jobs: Jobs,
        histories: Mapping[str, History | PrometheusHistory],
    ) -> None:
        """Create the pages. `histories` are the past of each cluster's charts."""
        self._settings = settings
        self._jobs = jobs
        self._histories = histories
        self._sessions = sessions
        self._login = login
        self._rendering = Rendering()
        self._static = static_files()
        self._login_key = new_secret()
        self._klein = Klein()
        self._add_routes()

    def resource(self) -> KleinResource:
        return self._klein.resource()

    def _add_routes(self) -> None:
        add = self._klein.route
        for route in ROUTES:
            add(route.path, methods=[route.method], endpoint=f"{route.method} {route.path}")(self._handler(route))
        add("/login", methods=["GET"], endpoint="GET /login")(self._guarded(self._login_page))
        add("/login", methods=["POST"], endpoint="POST /login")(self._guarded(self._log_in))
        add("/cluster", methods=["POST"], endpoint="POST /cluster")(self._guarded(self._switch))
        add("/logout", methods=["POST"], endpoint="POST /logout")(self._guarded(self._log_out))
        add("/static/<name>", methods=["GET"], endpoint="static")(self._file)
        self._klein.handle_errors(HTTPException)(self._no_page)

    # checks

    def _handler(self, route: Route) -> Callable[[Request], Coroutine[Any, Any, bytes]]:
        async def handle(request: Request) -> bytes:
            session = self._session(request)
            if session is None:
                return self._come_in_first(request, route)
            past = self._histories[session.cluster]
            visit = Visit(route.path, fields(request), session, self._settings, self._jobs, past)
            if route.method == "POST" and not session.wrote(visit.text("form_key")):
                return self._failed(request, session, STALE_FORM)
            if not session.may(route.needs):
                return self._failed(request, session, NOT_ALLOWED)
            return await self._answered(request, route, visit)

        return self._guarded(handle)

    def _guarded(
        self, handle: Callable[[Request], Coroutine[Any, Any, bytes]]
    ) -> Callable[[Request], Coroutine[Any, Any, bytes]]:
        """Return a handler that sets the headers of each answer, and refuses hosts and forms of strangers."""

        async def guarded(request: Request) -> bytes:
            _set_headers(request)
            if not self._is_our_host(request) or not _is_own_form(request):
                return self._failed(request, None, FOREIGN)
            return await handle(request)

        return guarded

    def _is_our_host(self, request: Request) -> bool:
        host = (request.getHeader("host") or "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return self._settings.bind != LOOPBACK or name in LOCAL_HOSTS

    def _session(self, request: Request) -> Session | None:
        cookie = request.getCookie(self._cookie_name(request))
        return None if cookie is None else self._sessions.find(cookie.decode("ascii", "replace"))

    def _cookie_name(self, request: Request) -> bytes:
        """Return a cookie name with the port: browsers do not separate cookies by port, and several consoles may run on a
        host.
        """
        return b"mq_console_%d" % request.getHost().port

    def _set_cookie(self, request: Request, value: str, max_age: bytes | None = None) -> None:
        """Set the cookie so that other sites' pages and scripts, and unencrypted connections where ours are encrypted,
        never get it.
        """
        secure = self._settings.certificate is not None
        request.addCookie(
            self._cookie_name(request),
            value,
            path=b"/",
            max_age=max_age,
            secure=secure,
            httpOnly=True,
            sameSite="strict",
        )

    def _come_in_first(self, request: Request, route: Route) -> bytes:
        if route.path.startswith("/api/"):
            request.setResponseCode(401)
            request.setHeader(b"content-type", b"application/json")
            return b'{"error":"log in first"}'
        return _see_other(request, "/login")

    # answers

    async def _answered(self, request: Request, route: Route, visit: Visit) -> bytes:
        try:
            return self._written(request, visit.session, await route.page(visit))
        except (BadInput, NotThere, *FAILURES) as error:
            return self._failed(request, visit.session, explained(error))
        except Exception:
            self.log.failure("page failed: {path}", path=route.path)
            return self._failed(request, visit.session, DEFECT)

    def _written(self, request: Request, session: Session | None, answer: Answer) -> bytes:
        if isinstance(answer, Redirect):
            return _see_other(request, answer.path)
        if isinstance(answer, JsonValue):
            request.setHeader(b"content-type", b"application/json")
            return json.dumps(answer.value).encode()
        if isinstance(answer, Download):
            name = urllib.parse.quote(answer.file_name, safe="")
            request.setHeader(b"content-type", answer.content_type.encode())
            request.setHeader(b"content-disposition", f"attachment; filename*=UTF-8''{name}".encode())
            return answer.body
        request.setResponseCode(answer.status)
        request.setHeader(b"content-type", b"text/html; charset=utf-8")
        return self._rendering.page(answer.template, {**self._everywhere(request, session), **answer.values})

    def _everywhere(self, request: Request, session: Session | None) -> Mapping[str, object]:
        """Return the values that every template may use."""
        clusters, shown = self._settings.clusters, self._settings.name if session is None else session.cluster
        return {
            "session": session,
            "operator": session is not None and session.may(Role.OPERATOR),
            "notices": [] if session is None else session.told(),
            "navigation": [one for one in NAVIGATION if one.path != "/ordered" or self._shows_ordered(session)],
            "here": urllib.parse.urlsplit(request.uri.decode("ascii", "replace")).path,
            "name_servers": (clusters.get(shown) or next(iter(clusters.values()))).name_servers,
            "switch_between": list(clusters) if session is not None and len(clusters) > 1 else [],
            "shown_cluster": shown,
        }

    def _shows_ordered(self, session: Session | None) -> bool:
        """Return True if the coordinator has the lists of the cluster that is shown."""
        return self._settings.coordinator is not None and session is not None and session.cluster == self._settings.name

    def _failed(self, request: Request, session: Session | None, failed: Failed) -> bytes:
        return self._written(request, session, Page("failed.html", {"failed": failed}, failed.status))

    def _no_page(self, request: Any, failure: Any) -> bytes:
        _set_headers(request)
        return self._failed(request, self._session(request), NO_PAGE)

    def _file(self, request: Request, name: str) -> bytes:
        _set_headers(request)
        if name not in STATIC:
            return self._failed(request, None, NO_PAGE)
        request.setHeader(b"content-type", STATIC[name])
        request.setHeader(b"cache-control", b"no-cache")
        return self._static[name]

    # log in and out

    async def _login_page(self, request: Request) -> bytes:
        if self._session(request) is not None:
            return _see_other(request, "/")
        return self._login_form(request, None)

    def _login_form(self, request: Request, problem: str | None) -> bytes:
        values = {"problem": problem, "accounts": self._settings.accounts, "form_key": self._login_key}
        return self._written(request, None, Page("login.html", values, 200 if problem is None else 403))

    async def _log_in(self, request: Request) -> bytes:
        given = {name: values[0] for name, values in fields(request).items()}
        if not hmac.compare_digest(self._login_key.encode(), given.get("form_key", "").encode()):
            return self._login_form(request, "That page is too old. Please try again.")
        try:
            session = await self._begun(given, request.getClientAddress().host)
        except LoginRefused as refused:
            return self._login_form(request, str(refused))
        except FAILURES as error:
            return self._login_form(request, explained(error).text)
        self._set_cookie(request, session.key)
        return _see_other(request, "/")

    async def _begun(self, given: Mapping[str, str], host: str) -> Session:
        if not self._settings.accounts:
            return await self._login.by_token(given.get("token", ""), host)
        access_key, secret_key = given.get("access_key", "").strip(), given.get("secret_key", "").strip()
        return await self._login.by_account(access_key, secret_key, host, read_only="read_only" in given)

    async def _switch(self, request: Request) -> bytes:
        """Show another cluster, on the page of the menu where the user is."""
        session = self._session(request)
        if session is None:
            return _see_other(request, "/login")
        given = {name: values[0] for name, values in fields(request).items()}
        if not session.wrote_any(given.get("form_key", "")):
            return self._failed(request, session, STALE_FORM)
        try:
            await self._login.switch(session, given.get("cluster", ""))
        except LoginRefused as refused:
            return self._failed(request, session, Failed(403, "This cluster is not shown", str(refused)))
        except FAILURES as error:
            return self._failed(request, session, explained(error))
        pages = [entry.path for entry in NAVIGATION]
        here = given.get("here", "")
        return _see_other(request, here if here in pages and here != "/ordered" else "/")

    async def _log_out(self, request: Request) -> bytes:
        session = self._session(request)
        key = fields(request).get("form_key", ("",))[0]
        if session is not None and session.wrote_any(key):
            self._sessions.end(session)
            self._set_cookie(request, "", max_age=b"0")
        return _see_other(request, "/login")


STALE_FORM = Failed(
    403,
    "This form is old",
    "It belongs to a session that has ended, or to a cluster that is not shown any more.",
    "Go back and reload the page.",
)
NOT_ALLOWED = Failed(403, "Read only", "Your session can view everything, but not change anything.")
FOREIGN = Failed(403, "Request refused", "This request came from another page, or with another host name.")
NO_PAGE = Failed(404, "No such page", "The console has no page of this name.", "Use the menu to open a page.")
DEFECT = Failed(500, "This page failed", "This is a bug in the console; its log has the details.")


def explained(error: Exception) -> Failed:
    """Return an error as text for users."""
    text = said(error)
    if isinstance(error, BadInput):
        return Failed(400, "The request is not valid", text)
    if isinstance(error, NotThere):
        return Failed(404, "Not there", text)
    if isinstance(error, NoNameServer):
        return Failed(502, "No name server answers", text, "Reload this page when one is running.")
    if isinstance(error, RemotingError):
        return Failed(502, "A server does not answer", text, "The overview shows the running brokers.")
    if isinstance(error, BrokerError):
        return _refusal(error)
    return Failed(502, "The cluster did not complete the request", text)


def _refusal(error: BrokerError) -> Failed:
    """Return a server's refusal as text for users."""
    text = said(error)
    if error.response_code == ResponseCode.NO_PERMISSION:
        return Failed(
            403, "The cluster denies this request", text, "Check the rights of the account that you logged in with."
        )
    if error.response_code in (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.NO_MESSAGE, ResponseCode.QUERY_NOT_FOUND):
        return Failed(404, "Not there", text)
    return Failed(502, "A server refused the request", text)


def fields(request: Request) -> dict[str, list[str]]:
    """Return the fields of the address and of the form, as text."""
    return {
        name.decode("utf-8", "replace"): [value.decode("utf-8", "replace") for value in values]
        for name, values in (request.args or {}).items()
    }


def _is_own_form(request: Request) -> bool:
    """Return True if a form was sent by a page of this console; pages cannot forge the headers that browsers set about it."""
    if request.method != b"POST":
        return True
    if request.getHeader("sec-fetch-site") not in (None, "same-origin", "none"):
        return False
    origin = request.getHeader("origin")
    return origin is None or urllib.parse.urlsplit(origin).netloc.lower() == (request.getHeader("host") or "").lower()


def _set_headers(request: Request) -> None:
    for name, value in HEADERS.items():
        request.setHeader(name, value)


def _see_other(request: Request, path: str) -> bytes:
    request.setResponseCode(303)
    request.setHeader(b"location", path.encode())
    return b""
