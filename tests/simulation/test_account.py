"""The account of reached lines: what ran is in it, what did not is named, and the world is the same."""

from __future__ import annotations

import inspect
import os

from tests.simulation.account import Account, lines_of, report, sources
from tests.simulation.simulate import simulate
from twisted_mq.broker.transaction import transaction_check
from twisted_mq.storage.queues.consume_queue import ConsumeQueue

QUEUE = "storage/queues/consume_queue.py"
CHECK = "broker/transaction/transaction_check.py"


def span(function: object) -> range:
    """The lines of a function in its file."""
    text, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
    return range(first, first + len(text))


def test_every_file_under_test_is_there_and_has_functions() -> None:
    files = dict(sources())
    assert {QUEUE, CHECK, "coordination/zookeeper_session.py"} <= set(files)
    assert all(os.path.exists(path) for path in files.values())
    assert {line for line, name in lines_of(files[QUEUE]).items() if name == "ConsumeQueue.truncate"} < set(
        span(ConsumeQueue.truncate)
    )


def test_a_seed_reaches_the_same_lines_in_the_same_world_once() -> None:
    account = Account()
    first = simulate(2, account=account)
    assert first.trace == simulate(2).trace
    assert len(simulate(2, account=account).reached) < len(first.reached) / 100, "caches of the process may be full now"
    lines = {line for name, line in first.reached if name == CHECK}
    assert lines & set(span(transaction_check.TransactionCheck.round))
    assert "coordination/zookeeper_session.py" not in {name for name, _ in first.reached}


def test_what_was_not_reached_is_named_by_function() -> None:
    lines = lines_of(dict(sources())[CHECK])
    discard = {line for line, name in lines.items() if name == "TransactionCheck._discard"}
    told = [*report((CHECK, line) for line in lines if line not in discard)]
    place = told.index(f"{CHECK}: {len(lines) - len(discard)} of {len(lines)}")
    assert told[place + 1] == "    TransactionCheck._discard: never"
    assert told[-1].endswith("%")
    place = told.index(f"{QUEUE}: 0 of {len(lines_of(dict(sources())[QUEUE]))}")
    assert all(one.endswith(": never") for one in told[place + 1 : place + 5])
