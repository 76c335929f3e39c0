"""The table of request codes is made from the tables of processors."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from tests.support.broker import BrokerInMemory
from tests.support.codes_table import served_here, table_here
from twisted_mq.client.core.client_processor import ClientProcessor
from twisted_mq.client.core.request_and_reply import PendingRequests
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import HeaderError
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_fields import wire_fields
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic
from twisted_mq.served_codes import ROLES, CodeRow, markdown, rows


def test_every_code_has_a_row_that_says_something() -> None:
    table = table_here()
    assert [row.code for row in table] == sorted(RequestCode)
    assert [row.code.name for row in table if not row.text] == []


def test_daily_codes_are_served() -> None:
    refused = {row.code.name for row in table_here() if row.refused and REQUESTS[row.code].tier.startswith("4.x")}
    unused = {code.name for code, spec in REQUESTS.items() if not spec.served_by}
    assert {row.text for row in table_here() if row.code == RequestCode.VIEW_BROKER_STATS_DATA} == {
        "served by the broker"
    }
    assert refused - unused <= {"UPDATE_BROKER_CONFIG", "GET_BROKER_CONFIG"}


def test_processes_serve_only_codes_of_their_role() -> None:
    wrong = [
        (role, code)
        for role, codes in served_here().items()
        for code in codes
        if RequestCode(code) not in REQUESTS or role not in REQUESTS[RequestCode(code)].served_by
    ]
    assert wrong == []
    assert set(served_here()) == set(ROLES)


def test_client_reads_the_headers_that_the_registry_says() -> None:
    for code, processor in ClientProcessor({}, {}, PendingRequests(Clock())).table().items():
        header = REQUESTS[RequestCode(code)].request_header
        if header is not None and any(field.required for field in wire_fields(header)):
            with pytest.raises(HeaderError, match=f"^{header.__name__}[.].*: required, but missing"):
                processor(SocketChannel(Traffic({}, Clock())), RemotingCommand(code, ext_fields={"unknown": "1"}))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (RequestCode.PULL_MESSAGE, "served by the broker"),
        (RequestCode.REGISTER_BROKER, "refused: not yet"),
        (RequestCode.TRIGGER_DELETE_FILES, "refused: nothing in 5.3.3 serves it"),
        (RequestCode.AUTH_GET_USER, "served by the broker where it has users (authenticationEnabled)"),
        (RequestCode.CONTROLLER_ELECT_MASTER, "refused: there is no controller"),
        (RequestCode.GET_CONSUMER_RUNNING_INFO, "served by the broker and the client"),
        (RequestCode.GET_BROKER_CONFIG, "served by the broker; refused: there is no broker container: a process runs one broker"),
    ],
)  # fmt: skip
def test_row_tells_who_serves_a_code_or_why_nobody_does(code: RequestCode, text: str) -> None:
    served = {"broker": {11, 26, 307, 3004}, "namesrv": set(), "client": {307}}
    (row,) = [row for row in rows(served) if row.code == code]
    assert row.text == text


def test_refused_means_request_code_not_supported() -> None:
    broker = BrokerInMemory()
    answer = broker.connect().ask(RequestCode.ADD_BROKER)
    assert (answer.code, answer.remark) == (
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        " request type 902 not supported",
    )


def test_table_as_markdown() -> None:
    assert markdown([CodeRow(RequestCode.PULL_MESSAGE, ("broker",), "")]).splitlines()[2] == (
        "| 11 | PULL_MESSAGE | served by the broker |"
    )
