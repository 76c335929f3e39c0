"""Results of a siege, and the violations among them."""

from __future__ import annotations

import json
import signal
from typing import Any

import attrs

from tests.soak.outcome import BESIDE_MIB
from twisted_mq.config.connection_options import MIB
from twisted_mq.remoting.budget import Budget

P99_MS = 200.0


@attrs.define
class Outcome:
    """Times are in ms, memory in MiB without mapped files, processor time in seconds."""

    seconds: float = 0.0
    load_average: float = 0.0
    connections: int = 0
    honest: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    most_memory: dict[str, float] = attrs.field(factory=dict)
    processor_seconds: dict[str, float] = attrs.field(factory=dict)
    long_turns: dict[str, int] = attrs.field(factory=dict)
    longest_turns: dict[str, list[tuple[float, str]]] = attrs.field(factory=dict)
    exit_status: dict[str, int] = attrs.field(factory=dict)
    slave_behind_bytes: int = -1
    logs_mib: dict[str, float] = attrs.field(factory=dict)
    faults: list[str] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)
    strangers: dict[str, dict[str, int]] = attrs.field(factory=dict)

    def text(self) -> str:
        """As JSON, a member a line."""
        members = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in attrs.asdict(self).items())
        return "{\n" + ",\n".join(members) + "\n}"


MOST_LOG_MIB = 10.0
TRIED = 0.3
"""The share of hostile cases that are tried in any run; a short one on a busy machine does not come to all."""


def broken_promises(outcome: Outcome) -> list[str]:
    """Return violated promises, which must not occur even on a slow machine."""
    limits = Budget[Any]().options
    most_mib = (limits.max_unsent_bytes + limits.max_incomplete_bytes + limits.max_remembered_bytes) / MIB + BESIDE_MIB
    problems = [*outcome.wrong, *outcome.faults]
    for kind, seen in outcome.honest.items():
        problems += [
            f"{kind}: {seen[what]} {what}" for what in ("errors", "missing", "forged", "unknown", "early") if seen[what]
        ]
        if not seen["acknowledged"]:
            problems.append(f"{kind}: nothing was acknowledged")
    problems += [f"{name}: {mib} MiB of memory" for name, mib in outcome.most_memory.items() if mib > most_mib]
    problems += [f"{name}: {mib} MiB of log" for name, mib in outcome.logs_mib.items() if mib > MOST_LOG_MIB]
    stopped = {0, -signal.SIGTERM}
    problems += [f"{name}: exit status {code}" for name, code in outcome.exit_status.items() if code not in stopped]
    tried = sum(bool(seen["rounds"]) for seen in outcome.strangers.values())
    if tried < len(outcome.strangers) * TRIED:
        problems.append(f"only {tried} of {len(outcome.strangers)} hostile cases were tried")
    if outcome.slave_behind_bytes:
        problems.append(f"the slave's log is {outcome.slave_behind_bytes} bytes behind its master's")
    return problems


def slow(outcome: Outcome) -> list[str]:
    """Return slow results, on a machine without other work."""
    never = [f"{name} was never tried" for name, seen in outcome.strangers.items() if not seen["rounds"]]
    return never + [
        f"{kind}: 99 of 100 took up to {seen['p99_ms']} ms"
        for kind, seen in outcome.honest.items()
        if seen["p99_ms"] > P99_MS
    ]
