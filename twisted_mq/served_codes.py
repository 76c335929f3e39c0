"""Lists which of RocketMQ 5.3.3's request codes are served here, and why the others are not: the table in docs/reference.

The codes in a process's table of processors are served; all others are answered with REQUEST_CODE_NOT_SUPPORTED.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.registry import REQUESTS

ROLES = {"broker": "broker", "namesrv": "name server", "client": "client"}
"""Apache's roles that exist here, and their names for readers."""

WHERE_BY_TIER = {"auth": " where it has users (authenticationEnabled)"}
"""The condition under which codes are served that are not always served."""

REASONS_BY_ROLE = {
    "controller": "there is no controller",
    "controller-internal": "an entry of the controller's log, never a request",
    "container": "there is no broker container: a process runs one broker",
}

REASONS_BY_TIER = {
    "controller": "there is no controller",
    "ha": "replication without a controller does not need it",
    "lite/other 5.x": "a part of 5.x that does not exist here",
}
"""The reason that a code is not served, unless the role that it is for gives one."""


@attrs.frozen
class CodeRow:
    """A code: the servers that serve it here, and why the other roles do not; both empty if 5.3.3 serves it nowhere."""

    code: RequestCode
    served_by: tuple[str, ...]
    refused: str

    @property
    def text(self) -> str:
        """Return the table's text: the servers, or the refusal and its reason."""
        served = f"served by the {' and the '.join(self.served_by)}" if self.served_by else ""
        refused = f"refused: {self.refused}" if self.refused else ""
        where = WHERE_BY_TIER.get(REQUESTS[self.code].tier, "") if served else ""
        return "; ".join(part for part in (f"{served}{where}", refused) if part)


def rows(served: Mapping[str, Collection[int]]) -> list[CodeRow]:
    """Return a row for each code of the registry; `served` has the codes of each role of `ROLES`."""
    return [_row(code, served) for code in sorted(REQUESTS)]


def _row(code: RequestCode, served: Mapping[str, Collection[int]]) -> CodeRow:
    roles = REQUESTS[code].served_by
    serving = [role for role in roles if code in served.get(role, ())]
    reasons = dict.fromkeys(_reason(code, role) for role in roles if role not in serving)
    refused = ", ".join(reasons) if roles else "nothing in 5.3.3 serves it"
    return CodeRow(code, tuple(ROLES[role] for role in serving), refused)


def _reason(code: RequestCode, role: str) -> str:
    reason = REASONS_BY_ROLE.get(role) or REASONS_BY_TIER.get(REQUESTS[code].tier)
    return reason or "not yet"


def markdown(table: list[CodeRow]) -> str:
    """Return the table as pages show it."""
    lines = ["| code | name | |", "|---:|---|---|"]
    lines += [f"| {int(row.code)} | {row.code.name} | {row.text} |" for row in table]
    return "\n".join(lines) + "\n"
