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
    "move": "move an intact record back to its place",
    "fill": "cover damaged bytes with a rolled back message, which is never delivered",
    "blank": "end the file before damaged bytes",
    "zero": "clear the bytes after the last intact record of the log",
}


@click.command(short_help="Repair a damaged store and keep every intact message.")
@store_arguments
@click.option("--apply", is_flag=True, help="Apply the plan; without --apply it is only printed.")
@file_size_option
@json_option
def repair(directory: str, commit_log: str | None, apply: bool, file_size: int, as_json: bool) -> None:
    """Show what is wrong with the store in DIRECTORY and how to repair it; with --apply, repair it.

    Records with a correct magic, size, CRC and offset are kept, also after damage. Damaged bytes are saved in
    DIRECTORY/damaged/repair-TIME with a manifest.json before anything is changed. Queues and index are rebuilt from
    the log. With --apply the broker must be stopped.

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
        ("queues to rebuild", "all" if plan.rebuild_queues else "none"),
        ("index to rebuild", "yes" if plan.rebuild_index else "no"),
        ("consumer offsets to set back", len(plan.consumer_offsets)),
    ]


def steps(plan: RepairPlan) -> list[str]:
    """Return a line for each change of the log and of consumer offsets."""
    lines = []
    for file in plan.log.files:
        if file.actual_size != file.size:
            lines.append(f"{file.path}: set its size to {file.size} bytes, it has {file.actual_size}")
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
        return "nothing to repair" if plan.found.sound else "these findings cannot be repaired from the log"
    if applied:
        return f"done; removed data is kept in {plan.kept_in}"
    return "nothing was changed; add --apply to do it"
