"""Who is in, and how one gets in: sessions, one-time tokens, and how many attempts may fail."""

from __future__ import annotations

import enum
import hmac
import secrets
from collections.abc import Callable

import attrs

from twisted_mq.admin.calls import AdminCalls

IDLE_SECONDS = 3600.0
LONGEST_SECONDS = 12 * 3600.0
MOST_SESSIONS = 32
"""Past that the one that did nothing for the longest time ends."""

FREE_FAILURES = 3
LONGEST_WAIT_SECONDS = 60.0
FORGOTTEN_SECONDS = 3600.0
"""After so long without a failure a host begins anew."""
MOST_HOSTS = 1000

Secret = Callable[[], str]


def new_secret() -> str:
    """256 bits, as text for a URL or a form."""
    return secrets.token_urlsafe(32)


class Role(enum.IntEnum):
    """What somebody may do; each may do what those before it may."""

    READER = 1
    OPERATOR = 2


@attrs.frozen
class Notice:
    """A line that the next page shows; `link` is a path that it leads to."""

    text: str
    good: bool = True
    link: str | None = None


@attrs.define(eq=False)
class Session:
    """Somebody who is in. `key` is the cookie's value, `form_key` stands in each form of his pages."""

    user: str
    role: Role
    admin: AdminCalls
    key: str = attrs.field(repr=False)
    form_key: str = attrs.field(repr=False)
    began: float
    seen: float
    notices: list[Notice] = attrs.field(factory=list)

    def may(self, role: Role) -> bool:
        return self.role >= role

    def told(self) -> list[Notice]:
        """What was to be shown; the next call has nothing."""
        notices, self.notices = self.notices, []
        return notices

    def wrote(self, form_key: str) -> bool:
        """Whether a form came from a page of this session."""
        return hmac.compare_digest(self.form_key.encode(), form_key.encode())


class Sessions:
    """All sessions. They end when nothing was asked for an hour, and after twelve; connections are closed then."""

    def __init__(self, now: Callable[[], float], secret: Secret = new_secret) -> None:
        self._now = now
        self._secret = secret
        self._sessions: dict[str, Session] = {}

    def begin(self, user: str, role: Role, admin: AdminCalls) -> Session:
        """Somebody came in."""
        self._end_old()
        while len(self._sessions) >= MOST_SESSIONS:
            self.end(min(self._sessions.values(), key=lambda one: one.seen))
        now = self._now()
        session = Session(user, role, admin, self._secret(), self._secret(), now, now)
        self._sessions[session.key] = session
        return session

    def find(self, key: str) -> Session | None:
        """Whose cookie it is, from now on again for an hour."""
        self._end_old()
        session = self._sessions.get(key)
        if session is not None:
            session.seen = self._now()
        return session

    def end(self, session: Session) -> None:
        """A second call does nothing."""
        if self._sessions.pop(session.key, None) is not None:
            session.admin.client.close()

    def end_all(self) -> None:
        for session in list(self._sessions.values()):
            self.end(session)

    def _end_old(self) -> None:
        now = self._now()
        for session in list(self._sessions.values()):
            if now - session.seen > IDLE_SECONDS or now - session.began > LONGEST_SECONDS:
                self.end(session)


class OneTimeToken:
    """Lets one person in; `announce` is told each new one."""

    def __init__(self, announce: Callable[[str], None], secret: Secret = new_secret) -> None:
        self._announce = announce
        self._secret = secret
        self._token = ""

    def renew(self) -> None:
        """The one before counts no more."""
        self._token = self._secret()
        self._announce(self._token)

    def take(self, given: str) -> bool:
        """Whether it is the token; it is used up then, and another one announced."""
        if not self._token or not hmac.compare_digest(self._token.encode(), given.strip().encode()):
            return False
        self.renew()
        return True


@attrs.define
class _Failures:
    count: int = 0
    last: float = 0.0


class Attempts:
    """How long each host waits after attempts that failed: nothing after the first ones, then twice as long each time.

    Who fails keeps nobody else out.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._hosts: dict[str, _Failures] = {}

    def failed(self, host: str) -> None:
        """Count a failure; of too many hosts the one whose last failure is the oldest is forgotten."""
        failures = self._hosts.pop(host, None) or _Failures()
        if self._now() - failures.last > FORGOTTEN_SECONDS:
            failures.count = 0
        failures.count, failures.last = failures.count + 1, self._now()
        while len(self._hosts) >= MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        self._hosts[host] = failures

    def wait_seconds(self, host: str) -> float:
        """Return how long a host may not try; 0 where it may."""
        failures = self._hosts.get(host)
        if failures is None or failures.count < FREE_FAILURES:
            return 0.0
        delay = min(LONGEST_WAIT_SECONDS, 2.0 ** min(failures.count - FREE_FAILURES, 10))
        return max(0.0, failures.last + delay - self._now())
