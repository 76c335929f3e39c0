"""The registry equals the reference table of 5.3.3, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.registry import REQUESTS, Payload

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "codes.json").read_text())["requests"]
ONE_WAY = {
    "BROKER_HEARTBEAT",
    "CHECK_TRANSACTION_STATE",
    "END_TRANSACTION",
    "NOTIFY_BROKER_ROLE_CHANGED",
    "NOTIFY_CONSUMER_IDS_CHANGED",
    "NOTIFY_MIN_BROKER_ID_CHANGE",
    "RESET_CONSUMER_CLIENT_OFFSET",
    "UPDATE_CONSUMER_OFFSET",
}


def name_of(declared: Any) -> str | None:
    """Return the name of a header or body class in the reference."""
    if declared is None:
        return None
    if isinstance(declared, Payload):
        return declared.value
    if arguments := get_args(declared):
        return "JSON list of broker names" if arguments == (str,) else f"List<{arguments[0].__name__}>"
    return str(declared.__name__)


def reference_body(name: str | None) -> str | None:
    """The reference's text without what it adds in explanation."""
    if name is None:
        return None
    return name.replace(" on the broker-to-client leg", "").replace("; see constants.json", "")


def test_every_request_code_has_a_row() -> None:
    assert set(REQUESTS) == set(RequestCode)


@pytest.mark.parametrize("name", REFERENCE)
def test_row_equals_the_reference(name: str) -> None:
    spec, row = REQUESTS[RequestCode[name]], REFERENCE[name]
    assert {
        "code": RequestCode[name].value,
        "tier": spec.tier,
        "served_by": list(spec.served_by),
        "request_header": name_of(spec.request_header),
        "response_header": name_of(spec.response_header),
        "request_body": name_of(spec.request_body),
        "response_body": name_of(spec.response_body),
    } == {
        **row,
        "request_body": reference_body(row["request_body"]),
        "response_body": reference_body(row["response_body"]),
    }


def test_one_way_requests() -> None:
    assert {code.name for code, spec in REQUESTS.items() if spec.one_way} == ONE_WAY
