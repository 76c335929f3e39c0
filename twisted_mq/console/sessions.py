"""Keeps sessions, one-time tokens, and the number of failed attempts."""

from __future__ import annotations

import copy
import enum
import hmac
import secrets
from collections.abc import Callable

import attrs

from twisted_mq.admin.calls import AdminCalls

IDLE_SECONDS = 3600.0
LONGEST_SECONDS = 12 * 3600.0
MOST_SESSIONS = 32
"""The most sessions. Past that, the one that was idle for the longest time ends."""

FREE_FAILURES = 3
LONGEST_WAIT_SECONDS = 60.0
FORGOTTEN_SECONDS = 3600.0
"""After this long without a failure, a host starts again without waits."""
MOST_HOSTS = 1000

Secret = Callable[[], str]


def new_secret() -> str:
    """Return 256 random bits, as text for a URL or a form."""
    return secrets.token_urlsafe(32)


class Role(enum.IntEnum):
    """The rights of a user; each role includes those before it."""

    READER = 1
    OPERATOR = 2


@attrs.frozen
class Notice:
    """A line that the next page shows; `link` is a path that it links to."""

    text: str
    good: bool = True
    link: str | None = None


@attrs.frozen
class ShownCluster:
    """A cluster as one user sees it. Each form of its pages contains `form_key`."""

    cluster: str
    role: Role
    admin: AdminCalls
    form_key: str = attrs.field(repr=False)


@attrs.define
class Session:
    """A user who is logged in. `key` is the cookie's value; `place` is the cluster that pages show.

    A form is taken only while its cluster is shown: in another tab the user may have switched to another one.
    """

    user: str
    place: ShownCluster
    key: str = attrs.field(repr=False)
    began: float
    seen: float
    most: Role = Role.OPERATOR
    """The most that the user wants to be allowed, at any cluster."""
    places: dict[str, ShownCluster] = attrs.field(factory=dict)
    notices: list[Notice] = attrs.field(factory=list)

    @property
    def cluster(self) -> str:
        return self.place.cluster

    @property
    def role(self) -> Role:
        return self.place.role

    @property
    def admin(self) -> AdminCalls:
        return self.place.admin

    @property
    def form_key(self) -> str:
        return self.place.form_key

    def may(self, role: Role) -> bool:
        return self.role >= role

    def told(self) -> list[Notice]:
        """Return the notices to show; the next call returns none of them."""
        notices = list(self.notices)
        self.notices.clear()
        return notices

    def wrote(self, form_key: str) -> bool:
        """Return True if a form came from a page of this session and of the cluster that it shows."""
        return _is_same(self.form_key, form_key)

    def wrote_any(self, form_key: str) -> bool:
        """Return True if a form came from a page of this session, of any cluster."""
        return any(_is_same(one.form_key, form_key) for one in list(self.places.values()))


def _is_same(secret: str, given: str) -> bool:
    return hmac.compare_digest(secret.encode(), given.encode())


class ConsoleSessions:
    """All sessions. A session ends after an hour without a request, and after twelve hours; its connections are closed then."""

    def __init__(self, now: Callable[[], float], secret: Secret = new_secret) -> None:
        self._now = now
        self._secret = secret
        self._sessions: dict[str, Session] = {}

    def begin(self, user: str, role: Role, admin: AdminCalls, cluster: str = "", most: Role = Role.OPERATOR) -> Session:
        """Create a session that shows a cluster."""
        self._end_old()
        while len(self._sessions) >= MOST_SESSIONS:
            self.end(min(self._sessions.values(), key=lambda one: one.seen))
        now = self._now()
        place = ShownCluster(cluster, min(role, most), admin, self._secret())
        session = Session(user, place, self._secret(), now, now, most, {cluster: place})
        self._sessions[session.key] = session
        return session

    def show(self, session: Session, cluster: str) -> bool:
        """Show a cluster in a session's next requests. Return False if it was not shown before."""
        kept, place = self._sessions.get(session.key), session.places.get(cluster)
        if kept is not None and place is not None:
            kept.place = place
        return place is not None

    def add(self, session: Session, cluster: str, role: Role, admin: AdminCalls) -> None:
        """Show a cluster for the first time. If the session ended meanwhile, or shows it already, close the connections."""
        if session.key not in self._sessions or cluster in session.places:
            admin.client.close()
        else:
            session.places[cluster] = ShownCluster(cluster, min(role, session.most), admin, self._secret())
        self.show(session, cluster)

    def find(self, key: str) -> Session | None:
        """Return the session of a cookie, which is valid for another hour from now on.

        It is a copy that goes on showing the same cluster: a request is about one cluster, whatever another tab shows.
        """
        self._end_old()
        session = self._sessions.get(key)
        if session is not None:
            session.seen = self._now()
        return copy.copy(session)

    def end(self, session: Session) -> None:
        """End a session. A second call does nothing."""
        if self._sessions.pop(session.key, None) is not None:
            for place in session.places.values():
                place.admin.client.close()

    def end_all(self) -> None:
        for session in list(self._sessions.values()):
            self.end(session)

    def _end_old(self) -> None:
        now = self._now()
        for session in list(self._sessions.values()):
            if now - session.seen > IDLE_SECONDS or now - session.began > LONGEST_SECONDS:
                self.end(session)


class OneTimeToken:
    """Lets one user in; `announce` is called with each new token."""

    def __init__(self, announce: Callable[[str], None], secret: Secret = new_secret) -> None:
        self._announce = announce
        self._secret = secret
        self._token = ""

    def renew(self) -> None:
        """Make a new token; the one before is not valid any more."""
        self._token = self._secret()
        self._announce(self._token)

    def take(self, given: str) -> bool:
        """Return True if the text is the token; it is used up then, and a new one is announced."""
        if not self._token or not hmac.compare_digest(self._token.encode(), given.strip().encode()):
            return False
        self.renew()
        return True


@attrs.define
class _Failures:
    count: int = 0
    last: float = 0.0


class Attempts:
    """The time that each host waits after failed attempts: nothing after the first ones, then twice as long each time.

    A host that fails does not block the others.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._hosts: dict[str, _Failures] = {}

    def failed(self, host: str) -> None:
        """Count a failure; past a limit of hosts, forget the one whose last failure is the oldest."""
        failures = self._hosts.pop(host, None) or _Failures()
        if self._now() - failures.last > FORGOTTEN_SECONDS:
            failures.count = 0
        failures.count, failures.last = failures.count + 1, self._now()
        while len(self._hosts) >= MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        self._hosts[host] = failures

    def wait_seconds(self, host: str) -> float:
        """Return how long a host must wait; 0 if it may try."""
        failures = self._hosts.get(host)
        if failures is None or failures.count < FREE_FAILURES:
            return 0.0
        delay = min(LONGEST_WAIT_SECONDS, 2.0 ** min(failures.count - FREE_FAILURES, 10))
        return max(0.0, failures.last + delay - self._now())
