"""Implements `mq order audit`: the proof of order, from the stores of all groups."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.cli.errors import report
from twisted_mq.cli.output import Row, json_line, print_table, progress
from twisted_mq.cli.store_options import LONGEST_LIST, json_option, require_numpy
from twisted_mq.protocol.text.json_value import Json

if TYPE_CHECKING:
    from twisted_mq.storage.tools.order_audit import OrderAudit, OrderFault, OrderTerm, PassedOver

TERM_COLUMNS = ("topic", "queue", "epoch", "leader", "messages", "sequences", "offsets", "resent", "stores")
FAULT_COLUMNS = ("topic", "queue", "fault", "epoch", "leader", "sequences", "store", "physicalOffset", "what")

PASSED_COLUMNS = ("topic", "queue", "epoch", "group", "passed over", "offsets", "reason", "store")

_JSON_NAMES = {"first_offset": "firstOffset", "last_offset": "lastOffset", "physical": "physicalOffset"}


@click.command(short_help="Verify the order of ordered queues: show epochs, gaps, swaps and repeats.")
@click.argument("stores", metavar="STORE...", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@json_option
def audit(stores: tuple[str, ...], as_json: bool) -> None:
    """Verify the order of all ordered queues in the stores (storePathRootDir) of all groups, of masters or slaves.

    A line shows what one leader sent in one epoch; "resent" counts messages that were sent again in a later epoch, because
    they were stored and not acknowledged before it. Lines without a leader are plain producers' messages. A second list
    has messages that consumer groups skipped without consuming them there. With any
    gap, swap or repeat, or if a log cannot be read, the exit code is 1. Brokers may be running.

    \b
    Example:
      mq order audit ~/broker-a/store ~/broker-b/store
    """
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.order_audit import audit_order
    from twisted_mq.storage.tools.order_marks import read_marks

    with progress("reading", sum(LogFiles(store).size_bytes for store in stores)) as advance:
        marks = read_marks(stores, advance)
    found = audit_order(marks)
    if as_json:
        terms, faults, passed_over = _objects(found.terms), _objects(found.faults), _objects(found.passed_over)
        sys.stdout.write(json_line({"terms": terms, "faults": faults, "passedOver": passed_over}))
    else:
        _print(found)
    for problem in marks.problems:
        report("mq order audit", f"{problem.path} at offset {problem.offset}: {problem.problem}")
    if found.faults or marks.problems:
        raise SystemExit(1)


def _objects(rows: Sequence[OrderTerm | OrderFault | PassedOver]) -> list[Json]:
    return [{_JSON_NAMES.get(name, name): value for name, value in attrs.asdict(row).items()} for row in rows]


def _print(found: OrderAudit) -> None:
    print_table(TERM_COLUMNS, map(term_row, found.terms))
    if found.faults:
        print_table(FAULT_COLUMNS, map(fault_row, found.faults[:LONGEST_LIST]))
    if len(found.faults) > LONGEST_LIST:
        print(f"and {len(found.faults) - LONGEST_LIST} more; --json prints all")
    if found.passed_over:
        print("Messages that a consumer group skipped without consuming them there:")
        print_table(PASSED_COLUMNS, map(passed_row, found.passed_over[-LONGEST_LIST:]))
    queues = len({(term.topic, term.queue) for term in found.terms})
    print(f"{queues} ordered queues: " + (f"{len(found.faults)} faults" if found.faults else "all in order"))


def term_row(term: OrderTerm) -> Row:
    """Return an OrderTerm under TERM_COLUMNS."""
    sequences = _span(term.first, term.last)
    offsets = _span(term.first_offset, term.last_offset)
    place = term.topic, term.queue, term.epoch, term.leader
    return (*place, term.messages, sequences, offsets, term.resent, " ".join(term.stores))


def fault_row(fault: OrderFault) -> Row:
    """Return an OrderFault under FAULT_COLUMNS."""
    from twisted_mq.storage.tools.order_audit import MEANINGS

    place = fault.topic, fault.queue, fault.kind, fault.epoch, fault.leader
    return (*place, _span(fault.first, fault.last), fault.store, fault.physical, MEANINGS[fault.kind])


def passed_row(one: PassedOver) -> Row:
    """Return a PassedOver under PASSED_COLUMNS."""
    offsets = _span(one.first_offset, one.first_offset + one.count - 1)
    return one.topic, one.queue, one.epoch, one.group, one.count, offsets, one.reason, one.store


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
