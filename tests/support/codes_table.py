"""The table of request codes, from the tables of processors: `python -m tests.support.codes_table` prints it."""

from __future__ import annotations

import tempfile

from twisted.internet.task import Clock

from tests.support.access import asking_broker
from twisted_mq.client.core.client_processor import ClientProcessor
from twisted_mq.client.core.request_and_reply import PendingRequests
from twisted_mq.namesrv.processor import REQUESTS as NAMESRV_REQUESTS
from twisted_mq.served_codes import CodeRow, markdown, rows


def served_here() -> dict[str, frozenset[int]]:
    """The codes of each process's table of processors; the broker's has users."""
    with tempfile.TemporaryDirectory() as folder:
        broker = asking_broker(folder)
    return {
        "broker": frozenset(broker.processors),
        "namesrv": frozenset(map(int, NAMESRV_REQUESTS)),
        "client": frozenset(map(int, ClientProcessor({}, {}, PendingRequests(Clock())).table())),
    }


def table_here() -> list[CodeRow]:
    return rows(served_here())


if __name__ == "__main__":
    print(markdown(table_here()), end="")
