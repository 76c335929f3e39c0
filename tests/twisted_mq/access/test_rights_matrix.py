"""Every request by every identity: the recorded matrix is what the code does, and what it must do."""

from __future__ import annotations

import pytest

from tests.support.rights_matrix import IDENTITIES, actual, recorded
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.rights import RIGHTS, Action

KINDS = ("2.0", "1.0")
READS = {Action.GET, Action.LIST}


@pytest.fixture(scope="module")
def matrix() -> dict[str, dict[str, list[str]]]:
    return actual()


def test_the_matrix_is_the_recorded_one(matrix: dict[str, dict[str, list[str]]]) -> None:
    """After an intended change run: python -m tests.support.rights_matrix."""
    assert matrix == recorded()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", recorded())
def test_row(name: str, kind: str) -> None:
    """No request passes without a signature, the admin's always do; a user without rights can only read, and only with 1.0."""
    row = recorded()[name][kind]
    assert not {"anonymous", "wrong signature"} & set(row)
    assert "admin" in row
    if "no rights" in row:
        assert kind == "1.0" and READS & set(RIGHTS[RequestCode[name]].actions)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", recorded())
def test_what_is_others_needs_their_right(name: str, kind: str) -> None:
    """A request that names a topic or a group is refused without a right on it, except reads that 1.0 allows for all."""
    row, rights = set(recorded()[name][kind]), RIGHTS[RequestCode[name]]
    if "no rights" in row:
        return
    others = {"own topic, other group", "other topic, own group"} & row
    for one in others:
        named = "topics" if one.startswith("own topic") else "groups"
        other = "groups" if named == "topics" else "topics"
        assert getattr(rights, named) is not getattr(type(rights)(), named), "it names what its sender owns"
        assert getattr(rights, other) is getattr(type(rights)(), other), "and nothing else"


def test_a_senders_signature_serves_for_no_other_kind_of_request() -> None:
    """A request with messages, receipts or offsets of consumers does not pass as one that changes topics, groups or users."""
    data = {"SEND_MESSAGE", "SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE", "PULL_MESSAGE", "POP_MESSAGE", "ACK_MESSAGE",
            "END_TRANSACTION", "CONSUMER_SEND_MSG_BACK", "UPDATE_CONSUMER_OFFSET", "CHANGE_MESSAGE_INVISIBLETIME"}  # fmt: skip
    taken = {code: data & set(row["takes"]) for code, row in recorded().items() if data & set(row["takes"])}
    assert taken == {
        "SEND_MESSAGE_V2": {"SEND_BATCH_MESSAGE"},
        "SEND_BATCH_MESSAGE": {"SEND_MESSAGE_V2"},
        "SEND_REPLY_MESSAGE": {"SEND_MESSAGE"},
        "SEND_REPLY_MESSAGE_V2": {"SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE"},
        "LITE_PULL_MESSAGE": {"PULL_MESSAGE"},
    }


def test_each_identity_is_somewhere() -> None:
    seen = {name for row in recorded().values() for kind in KINDS for name in row[kind]}
    assert seen == {one.name for one in IDENTITIES} - {"anonymous", "wrong signature"}
