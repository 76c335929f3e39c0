"""Results of a soak, and the expected ones."""

from __future__ import annotations

import json
import signal

import attrs

from tests.soak.load import OK
from twisted_mq.config.connection_options import MIB
from twisted_mq.remoting.budget import Budget

CONNECTIONS = 1000
BESIDE_MIB = 400
"""Memory of a server in addition to data held for its peers: mostly a name server with 200,000 topics of unknown hosts."""
SEND_P99_MS = 250.0
LONGEST_TURN_SECONDS = 0.25
MEMORY_A_MINUTE_MIB = 4.0


@attrs.define
class Outcome:
    """Results of one run. Times are in ms, memory in MiB without mapped files."""

    seconds: float = 0.0
    disk: str = ""
    connections: int = 0
    sends: dict[str, int] = attrs.field(factory=dict)
    sends_beside_a_full_disk: dict[str, int] = attrs.field(factory=dict)
    deliveries: int = 0
    delivered_again: int = 0
    send_p50_ms: float = 0.0
    send_p99_ms: float = 0.0
    slowest_send_ms: float = 0.0
    delivery_p99_ms: float = 0.0
    most_memory: dict[str, float] = attrs.field(factory=dict)
    memory_a_minute: dict[str, float] = attrs.field(factory=dict)
    processor_seconds: dict[str, float] = attrs.field(factory=dict)
    long_turns: dict[str, int] = attrs.field(factory=dict)
    longest_turns: dict[str, list[tuple[float, str]]] = attrs.field(factory=dict)
    exit_status: dict[str, int] = attrs.field(factory=dict)
    no_space: int = 0
    faults: list[str] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)
    missing: int = 0
    strangers: dict[str, dict[str, int]] = attrs.field(factory=dict)

    def text(self) -> str:
        """As JSON, a member a line."""
        members = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in attrs.asdict(self).items())
        return "{\n" + ",\n".join(members) + "\n}"


def broken_promises(outcome: Outcome) -> list[str]:
    """Return violated promises, which must not occur even on a slow machine."""
    budget = Budget[str]()
    most_mib = (budget.options.max_unsent_bytes + budget.options.max_incomplete_bytes) / MIB + BESIDE_MIB
    stopped = {0, -signal.SIGTERM}
    problems = [*outcome.wrong, *outcome.faults]
    problems += [f"{outcome.missing} acknowledged messages were not delivered"] * bool(outcome.missing)
    problems += [f"{name}: {mib} MiB of memory" for name, mib in outcome.most_memory.items() if mib > most_mib]
    problems += [f"{name}: exit status {code}" for name, code in outcome.exit_status.items() if code not in stopped]
    problems += [f"{name} was never tried" for name, seen in outcome.strangers.items() if not seen["rounds"]]
    if outcome.connections < CONNECTIONS:
        problems.append(f"only {outcome.connections} connections were open")
    if outcome.sends.get(OK, 0) < outcome.seconds:
        problems.append(f"the honest load was hardly served: {outcome.sends}")
    if not outcome.no_space:
        problems.append("the disk was never met full")
    return problems


def slow(outcome: Outcome) -> list[str]:
    """Return slow results, on a machine without other work."""
    problems = [
        f"{name}: {mib} MiB more a minute" for name, mib in outcome.memory_a_minute.items() if mib > MEMORY_A_MINUTE_MIB
    ]
    if outcome.send_p99_ms > SEND_P99_MS:
        problems.append(f"99 of 100 honest sends took up to {outcome.send_p99_ms} ms")
    for name, turns in outcome.longest_turns.items():
        problems += [
            f"{name}: a turn of {seconds} s,{which}" for seconds, which in turns if seconds > LONGEST_TURN_SECONDS
        ]
    return problems
