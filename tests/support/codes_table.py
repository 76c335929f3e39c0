"""The README's table of request codes: python -m tests.support.codes_table prints it, --write puts it into README.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from twisted.internet.task import Clock

from tests.support.broker import BrokerInMemory
from twisted_mq.client.core.client_processor import ClientProcessor
from twisted_mq.client.core.request_and_reply import PendingRequests
from twisted_mq.namesrv.processor import REQUESTS as NAMESRV_REQUESTS
from twisted_mq.served_codes import Row, markdown, rows


def served_here() -> dict[str, frozenset[int]]:
    """The codes of each process's table of processors."""
    return {
        "broker": frozenset(BrokerInMemory().processors),
        "namesrv": frozenset(map(int, NAMESRV_REQUESTS)),
        "client": frozenset(map(int, ClientProcessor({}, {}, PendingRequests(Clock())).table())),
    }


def table_here() -> list[Row]:
    return rows(served_here())


README = Path(__file__).parents[2] / "README.md"
MARKED = re.compile(r"(?<=<!-- codes -->\n).*?(?=<!-- /codes -->)", re.DOTALL)


def main() -> None:
    table = markdown(table_here())
    if "--write" in sys.argv:
        README.write_text(MARKED.sub(lambda _: table, README.read_text()))
    else:
        print(table, end="")


if __name__ == "__main__":
    main()
