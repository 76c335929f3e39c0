"""The requests that each identity may send: all codes of broker and name server, under both kinds of access control.

`python -m tests.support.rights_matrix` writes what the code does now to the file that the test and the page read; look
through the difference before it is committed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.task import Clock

from interop.bad_requests import good_value
from tests.support.access import ON, access_of
from tests.support.codes_table import served_here
from twisted_mq.access.guard import guarded
from twisted_mq.access.server_access import ServerAccess
from twisted_mq.protocol import bodies
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.requests.rights import RIGHTS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.protocol.wire.signature import Credentials, sign

FILE = Path(__file__).parents[1] / "twisted_mq" / "access" / "rights_matrix.json"
OWN, OTHER = "Own", "Other"
ADMIN = Credentials("administrator", "secret-of-admin")
NO_RIGHTS, OWNER = Credentials("nobody-here", "secret-of-nobody"), Credentials("owner-of-own", "secret-of-owner")
WRONG = Credentials(ADMIN.access_key, "another")
_ACCOUNTS = f"""
accounts:
  - {{accessKey: {ADMIN.access_key}, secretKey: {ADMIN.secret_key}, admin: true}}
  - {{accessKey: {NO_RIGHTS.access_key}, secretKey: {NO_RIGHTS.secret_key}, defaultTopicPerm: DENY, defaultGroupPerm: DENY}}
  - accessKey: {OWNER.access_key}
    secretKey: {OWNER.secret_key}
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
    topicPerms: [{OWN}=PUB|SUB]
    groupPerms: [{OWN}=PUB|SUB]
"""


@attrs.frozen
class Identity:
    """An identity that sends requests, with the topic and group of its requests."""

    name: str
    credentials: Credentials | None
    topic: str = OTHER
    group: str = OTHER


IDENTITIES = (
    Identity("anonymous", None),
    Identity("wrong signature", WRONG),
    Identity("no rights", NO_RIGHTS),
    Identity("own topic and group", OWNER, OWN, OWN),
    Identity("own topic, other group", OWNER, OWN, OTHER),
    Identity("other topic, own group", OWNER, OTHER, OWN),
    Identity("admin", ADMIN),
)


def _consumer(topic: str, group: str) -> bodies.HeartbeatData:
    subscriptions = [bodies.SubscriptionData(topic=topic, sub_string="*")]
    return bodies.HeartbeatData("id", [], [bodies.ConsumerData(group, subscription_data_set=subscriptions)])


_BODIES: dict[RequestCode, Callable[[str, str], object]] = {
    RequestCode.HEART_BEAT: _consumer,
    RequestCode.CHECK_CLIENT_CONFIG: lambda topic, group: bodies.CheckClientRequestBody(
        "id", group, bodies.SubscriptionData(topic=topic, sub_string="*")
    ),
    RequestCode.LOCK_BATCH_MQ: lambda topic, group: bodies.LockBatchRequestBody(
        group, "id", mq_set=[bodies.MessageQueue(topic, "broker", 0)]
    ),
    RequestCode.UNLOCK_BATCH_MQ: lambda topic, group: bodies.UnlockBatchRequestBody(
        group, "id", mq_set=[bodies.MessageQueue(topic, "broker", 0)]
    ),
    RequestCode.BATCH_ACK_MESSAGE: lambda topic, group: bodies.BatchAckMessageRequestBody(
        "broker", [bodies.BatchAck(group, topic, "0", bit_set="AQ==")]
    ),
    RequestCode.QUERY_ASSIGNMENT: lambda topic, group: bodies.QueryAssignmentRequestBody(topic, group, "id"),
    RequestCode.SET_MESSAGE_REQUEST_MODE: lambda topic, group: bodies.SetMessageRequestModeRequestBody(topic, group),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: lambda topic, group: bodies.CreateTopicListRequestBody(
        [bodies.TopicConfig(topic)]
    ),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: lambda topic, group: bodies.SubscriptionGroupConfig(group),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: lambda topic, group: bodies.SubscriptionGroupList(
        [bodies.SubscriptionGroupConfig(group)]
    ),
}
"""The bodies that name topics and groups."""


def request(code: RequestCode, topic: str = OTHER, group: str = OTHER, *, whole: bool = True) -> RemotingCommand:
    """Return a request that its code accepts. With `whole` it has all names that it may have, not only the required ones."""
    header = REQUESTS[code].request_header
    fields = {}
    for field in () if header is None else attrs.fields(header):
        wire = field.metadata["wire"]
        value = good_value(field, topic, group)
        if field.default is attrs.NOTHING or (whole and value in (topic, group)):
            fields[wire] = value
    return RemotingCommand.request(code, fields, _body(code, topic, group))


def _body(code: RequestCode, topic: str, group: str) -> bytes:
    make, declared = _BODIES.get(code), REQUESTS[code].request_body
    if make is not None:
        return encode_body(make(topic, group))
    if declared is None:
        return b""
    if not isinstance(declared, type):
        return b"x"
    return encode_body(declared()) if attrs.has(declared) else b"[]"


class Peer:
    """The connection of all requests."""

    remote_address = ("127.0.0.1", 1)
    address = "127.0.0.1:1"
    account: str | None = "all of them"


def codes() -> list[RequestCode]:
    """Every code that a broker or a name server answers."""
    served = served_here()
    return sorted(code for code in RIGHTS if int(code) in served["broker"] | served["namesrv"])


def gate(access: ServerAccess) -> Callable[[RemotingCommand], bool]:
    """Return a function that is True if a request passes access control, independent of its processor."""
    passed = RemotingCommand(0)
    table: Mapping[int, Any] = {int(code): lambda channel, command: passed for code in codes()}
    served: Any = guarded(table, access.checks, strict=access.strict)

    def passes(command: RemotingCommand) -> bool:
        try:
            return served[command.code](Peer(), command) is passed
        except (BrokerError, ProtocolError):
            return False

    return passes


def servers(folder: Path) -> dict[str, ServerAccess]:
    """A server of each kind of access control with the same accounts."""
    new = access_of(str(folder), Clock(), **ON)
    assert new.accounts is not None
    for one, kind in ((ADMIN, "Super"), (NO_RIGHTS, "Normal"), (OWNER, "Normal")):
        new.accounts.create_user(UserInfo(one.access_key, one.secret_key, kind))
    subject = f"User:{OWNER.access_key}"
    entries = [PolicyEntryInfo(f"{kind}:{OWN}", ["All"], [], "Allow") for kind in ("Topic", "Group")]
    new.accounts.put_policies(subject, AclInfo(subject, [PolicyInfo("Custom", entries)]))
    (folder / "conf").mkdir()
    (folder / "conf" / "plain_acl.yml").write_text(_ACCOUNTS)
    return {"2.0": new, "1.0": access_of(str(folder), Clock(), acl_enable=True, rocketmq_home=str(folder))}


def _signed(command: RemotingCommand, credentials: Credentials | None) -> RemotingCommand:
    if credentials is not None:
        sign(command, credentials)
    return command


def _readable(command: RemotingCommand) -> bool:
    """Return True if a processor can read header and body."""
    spec = REQUESTS[RequestCode(command.code)]
    try:
        if spec.request_header is not None:
            decode_header(spec.request_header, command)
        if isinstance(spec.request_body, type):
            decode_body(spec.request_body, command.body)
    except ProtocolError:
        return False
    return True


def _taken_for(code: RequestCode, passes: Callable[[RemotingCommand], bool]) -> list[str]:
    """The requests of an admin that are served under this code too, when they are sent again under it."""
    found = []
    for other in codes():
        if other == code:
            continue
        for whole in (True, False):
            command = _signed(request(other, whole=whole), ADMIN)
            again = RemotingCommand(int(code), body=command.body, ext_fields=dict(command.ext_fields))
            if passes(again) and _readable(again):
                found.append(other.name)
                break
    return found


def actual() -> dict[str, dict[str, Any]]:
    """The matrix as it is now: by code, the identities that get past, and the codes whose signed requests it takes."""
    with tempfile.TemporaryDirectory() as folder:
        passes = {name: gate(access) for name, access in servers(Path(folder)).items()}
        return {
            code.name: {
                **{kind: [one.name for one in IDENTITIES if _may(code, one, check)] for kind, check in passes.items()},
                "takes": _taken_for(code, passes["2.0"]),
            }
            for code in codes()
        }


def _may(code: RequestCode, one: Identity, passes: Callable[[RemotingCommand], bool]) -> bool:
    return passes(_signed(request(code, one.topic, one.group), one.credentials))


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """The matrix as it is to be."""
    matrix: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
    return matrix


if __name__ == "__main__":
    FILE.write_text(json.dumps(actual(), indent=1) + "\n")
