"""Represents one request of a logged-in user, as pages see it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.console.answers import BadInput
from twisted_mq.console.history import History
from twisted_mq.console.jobs import Jobs
from twisted_mq.console.prometheus import PrometheusHistory
from twisted_mq.console.sessions import Notice, Session
from twisted_mq.console.settings import ConsoleSettings

TIME_FORM = "2026-11-22T08:00"
PAGE_ROWS = 50
Row = TypeVar("Row")


@attrs.frozen
class Visit:
    """A request. `fields` are those of the address, and of the form if one was sent."""

    path: str
    fields: Mapping[str, Sequence[str]]
    session: Session
    settings: ConsoleSettings
    jobs: Jobs
    history: History | PrometheusHistory

    @property
    def admin(self) -> AdminCalls:
        return self.session.admin

    def now_ms(self) -> int:
        return self.admin.now_ms()

    def text(self, name: str, default: str = "") -> str:
        """Return the trimmed value of a field."""
        return self.fields.get(name, (default,))[0].strip()

    def whole(self, name: str) -> str:
        """Return a field as it was typed, with single line ends."""
        return self.fields.get(name, ("",))[0].replace("\r\n", "\n")

    def needed(self, name: str, label: str) -> str:
        """Return the trimmed value. Raises BadInput if it is missing."""
        value = self.text(name)
        if not value:
            raise BadInput(f"{label} is missing.")
        return value

    def every(self, name: str) -> list[str]:
        """Return all values of a field that may be given several times."""
        return [value.strip() for value in self.fields.get(name, ())]

    def number(self, name: str, label: str, default: int, least: int = 0, most: int = 1 << 31) -> int:
        """Return a whole number. Raises BadInput for any other text."""
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= most):
            raise BadInput(f"{label} must be a whole number from {least} to {most}, got {text!r}.")
        return int(text)

    def time_ms(self, name: str, label: str) -> int | None:
        """Return a time in UTC; None if none is given. Raises BadInput for any other text."""
        text = self.text(name)
        if not text:
            return None
        try:
            moment = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise BadInput(f"{label} must be a time in UTC like {TIME_FORM}, got {text!r}.") from None
        return int(moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp() * 1000)

    def tell(self, text: str, *, good: bool = True, link: str | None = None) -> None:
        """Show a notice on the next page."""
        self.session.notices.append(Notice(text, good, link))


@attrs.frozen
class ListPage(Generic[Row]):
    """A page of a long list; pages count from 1."""

    rows: Sequence[Row]
    number: int
    pages: int
    total: int


def cut(rows: Sequence[Row], number: int) -> ListPage[Row]:
    """Return the page of that number, or the last one."""
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    number = min(max(1, number), pages)
    return ListPage(rows[(number - 1) * PAGE_ROWS : number * PAGE_ROWS], number, pages, len(rows))
