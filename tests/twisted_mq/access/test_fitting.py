"""Requests that are signed for another code: told by their fields and bodies, where these differ."""

from __future__ import annotations

import pytest

from tests.support.captures import SCENARIOS, frames
from twisted_mq.access.fitting import fit
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder

ADA = {"AccessKey": "ada", "Signature": "x"}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_recorded_request_fits_its_code(scenario: str) -> None:
    """Also as if each were signed."""
    requests = [one for one in FrameDecoder().receive_data(frames(scenario)) if not one.is_response]
    for request in requests:
        if request.code in REQUESTS:
            fit(request.code)(
                RemotingCommand(request.code, body=request.body, ext_fields={**request.ext_fields, **ADA})
            )


@pytest.mark.parametrize(
    ("code", "fields", "body", "wrong"),
    [
        (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T", "queueId": "0"}, b"", "field queueId"),
        (RequestCode.UPDATE_BROKER_CONFIG, {"topic": "T"}, b"a=b", "field topic"),
        (RequestCode.GET_BROKER_CONFIG, {}, b"a=b", "a body of 3 bytes"),
    ],
)
def test_what_belongs_to_another_code_is_refused(code: int, fields: dict[str, str], body: bytes, wrong: str) -> None:
    with pytest.raises(BrokerError) as caught:
        fit(code)(RemotingCommand(code, body=body, ext_fields={**fields, **ADA}))
    assert (caught.value.response_code, caught.value.remark) == (
        ResponseCode.NO_PERMISSION,
        f"check signature failed. {wrong} does not belong to a request with code {int(code)}",
    )


def test_fields_that_no_request_of_today_has_are_let_pass() -> None:
    command = RemotingCommand(RequestCode.DELETE_TOPIC_IN_BROKER, ext_fields={"topic": "T", "newField": "x", **ADA})
    fit(RequestCode.DELETE_TOPIC_IN_BROKER)(command)


def test_what_nobody_has_signed_is_not_looked_at() -> None:
    fit(RequestCode.GET_BROKER_CONFIG)(RemotingCommand(RequestCode.GET_BROKER_CONFIG, ext_fields={"topic": "T"}))
