"""Errors of admin calls to servers that are not name servers."""

from __future__ import annotations

import pytest

from twisted_mq.admin.calls import NoNameServer
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.routing.name_servers import NotANameServer, check_name_server

BROKER, NOBODY = "10.0.0.1:10911", "10.0.0.2:9876"


def refused(code: RequestCode) -> NotANameServer:
    with pytest.raises(NotANameServer) as caught:
        check_name_server(code, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    return caught.value


@pytest.mark.parametrize("code", [RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO])
def test_a_server_that_does_not_know_what_each_name_server_knows_is_none(code: RequestCode) -> None:
    assert "not a name server, perhaps a broker (port 10911); use the address of the name server" in str(refused(code))


def test_other_requests_and_answers_prove_nothing() -> None:
    check_name_server(RequestCode.GET_KV_CONFIG, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    check_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, ResponseCode.TOPIC_NOT_EXIST)


def test_a_broker_is_named_and_who_does_not_answer_is_not() -> None:
    other, away = refused(RequestCode.GET_BROKER_CLUSTER_INFO), RemotingConnectError("connection refused")
    told = str(NoNameServer([BROKER, NOBODY], {BROKER: other, NOBODY: away}))
    assert told == f"{BROKER}: {other}; start one with `mq up`, or use another address with -n"
    nobody = str(NoNameServer([NOBODY], {NOBODY: away}))
    assert nobody == f"no name server answers at {NOBODY}; start one with `mq up`, or use another address with -n"
