"""Implements `mq store repair`: shows a plan, and with --apply executes it."""

from __future__ import annotations

import collections
import sys
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.output import json_line, print_table, progress
from twisted_mq.cli.store_options import (
    file_size_option,
    folder_name,
    json_option,
    print_some,
    require_numpy,
    store_arguments,
)

if TYPE_CHECKING:
    from twisted_mq.storage.tools.repair import RepairPlan

WORDS = {
    "move": "put an intact record back to its own place",
    "fill": "cover damaged bytes with a rolled back message, which nobody is given",
    "blank": "end the file before damaged bytes",
    "zero": "empty what is behind the log's last intact record",
}


@click.command(short_help="Make a damaged store sound; every intact message is kept.")
@store_arguments
@click.option("--apply", is_flag=True, help="Do it; without this only the plan is printed.")
@file_size_option
@json_option
def repair(directory: str, commit_log: str | None, apply: bool, file_size: int, as_json: bool) -> None:
    """Say what is wrong with the store in DIRECTORY and how it can be made sound; with --apply do it.

    Records that prove themselves by magic, size, CRC and own offset are kept, also behind damage. Damaged bytes go to
    DIRECTORY/damaged/repair-TIME with a manifest.json before anything is changed. Queues and index are made anew from
    the log. No broker may be running with --apply.

    \b
    Example:
      mq store repair ~/store
      mq store repair ~/store --apply
    """
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools import repair as repairing

    total_bytes = 2 * LogFiles(directory, commit_log).size_bytes
    with progress("repairing" if apply else "planning", total_bytes) as advance:
        if apply:
            name = folder_name("repair")
            plan = repairing.repair(directory, commit_log, name=name, file_size=file_size, advance=advance)
        else:
            plan = repairing.plan_repair(directory, commit_log, file_size=file_size, advance=advance)
    if as_json:
        sys.stdout.write(json_line({**repairing.describe(plan), "applied": apply and not plan.empty}))
        return
    print_some(plan.found.findings, len(plan.found.findings))
    print_table(("what", "value"), rows(plan))
    lines = list(steps(plan))
    print_some(lines, len(lines))
    print(conclusion(plan, apply))


def rows(plan: RepairPlan) -> list[tuple[str, object]]:
    """Return the plan's numbers."""
    return [
        ("problems", len(plan.found.findings)),
        ("intact messages", plan.found.messages),
        ("intact messages to move back", plan.log.moved_records),
        ("log files to change", len(plan.log.files)),
        ("damaged bytes to keep aside", plan.log.damaged_bytes),
        ("queues to make anew", "all" if plan.rebuild_queues else "none"),
        ("index to make anew", "yes" if plan.rebuild_index else "no"),
        ("consumer offsets to set back", len(plan.consumer_offsets)),
    ]


def steps(plan: RepairPlan) -> list[str]:
    """Return a line for each change of the log and of consumer offsets."""
    lines = []
    for file in plan.log.files:
        if file.actual_size != file.size:
            lines.append(f"{file.path}: make it {file.size} bytes long, it has {file.actual_size}")
        kinds = collections.Counter(step.kind for step in file.steps)
        places = {kind: [step.offset for step in file.steps if step.kind == kind] for kind in kinds}
        for kind, offsets in places.items():
            more = f" and at {len(offsets) - 1} more places" if len(offsets) > 1 else ""
            lines.append(f"{file.path} at {offsets[0]}{more}: {WORDS[kind]}")
    for key, queue_id, offset, end in plan.consumer_offsets:
        lines.append(f"consumer offset of {key}, queue {queue_id}: {end} instead of {offset}")
    return lines


def conclusion(plan: RepairPlan, applied: bool) -> str:
    """Return what was done, or how to do it."""
    if plan.empty:
        return "nothing to repair" if plan.found.sound else "nothing of this can be repaired from the log"
    if applied:
        return f"done; what was taken away is in {plan.kept_in}"
    return "nothing was changed; --apply does it"
