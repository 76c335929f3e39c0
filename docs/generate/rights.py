"""The table of rights, from the matrix that the test compares with the code."""

from __future__ import annotations

from docs.generate.tables import code, table
from tests.support.rights_matrix import recorded

_MOST_NAMED = 8
_SHORT = {
    "no rights": "every account",
    "own topic and group": "own",
    "own topic, other group": "own topic",
    "other topic, own group": "own group",
}


def rights_matrix() -> str:
    """A row for each request of a broker or name server."""
    return table(
        ("request", "2.0: also for", "1.0: also for", "takes the signature of"),
        [(name, _who(row["2.0"]), _who(row["1.0"]), _taken(row["takes"])) for name, row in sorted(recorded().items())],
    )


def _who(names: list[str]) -> str:
    """Return the accounts other than the admin that may send a request, as the widest of the names."""
    if "no rights" in names:
        return "every account"
    alone = [_SHORT[name] for name in names if name in ("own topic, other group", "other topic, own group")]
    return ", ".join(alone) or ("own topic and group" if "own topic and group" in names else "")


def _taken(names: list[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{len(names)} requests that have no fields, or a JSON body as it has"
    return ", ".join(map(code, names))
