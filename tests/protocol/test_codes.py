"""The enums hold exactly the codes of RocketMQ 5.3.3."""

from __future__ import annotations

import json
from pathlib import Path

from twisted_mq.protocol.codes import RequestCode, ResponseCode

REFERENCE = json.loads((Path(__file__).parent / "reference" / "codes.json").read_text())


def test_request_codes_equal_the_reference() -> None:
    assert {code.name: code.value for code in RequestCode} == {
        name: row["code"] for name, row in REFERENCE["requests"].items()
    }
    assert len(RequestCode) == 158


def test_response_codes_equal_the_reference() -> None:
    assert {code.name: code.value for code in ResponseCode} == REFERENCE["responses"]
    assert len(ResponseCode) == 66


def test_codes_are_plain_integers_on_the_wire() -> None:
    assert json.dumps({"code": RequestCode.SEND_MESSAGE_V2}) == '{"code": 310}'
