"""AUTH_CREATE_USER to AUTH_LIST_ACL: codes and remarks are Apache's."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.support.access import ROOT, SECRET, Signer, allow, asking_broker, make_user
from tests.support.broker import BrokerInMemory
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.signature import Credentials

CREATE, UPDATE, DELETE = RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_UPDATE_USER, RequestCode.AUTH_DELETE_USER
GET, LIST = RequestCode.AUTH_GET_USER, RequestCode.AUTH_LIST_USER
SYSTEM = "An system error occurred, please try again later."


@pytest.fixture
def broker(tmp_path: Path) -> BrokerInMemory:
    return asking_broker(str(tmp_path))


@pytest.fixture
def root(broker: BrokerInMemory) -> Signer:
    return Signer(broker, ROOT)


def shown(signer: Signer, code: int, **fields: str) -> object:
    answer = signer.answer(code, fields)
    assert (answer.code, answer.remark) == (0, None)
    return json.loads(answer.body) if answer.body else None


def test_users_are_made_changed_shown_and_forgotten(root: Signer) -> None:
    make_user(root, "ada", "planted")
    assert shown(root, GET, username="ada") == {"username": "ada", "userStatus": "enable", "userType": "Normal"}
    assert root.ask(UPDATE, {"username": "ada"}, b'{"userType":"super","userStatus":"DISABLE"}') == (0, None)
    assert shown(root, LIST, filter="a") == [{"username": "ada", "userStatus": "disable", "userType": "Super"}]
    assert [user["username"] for user in shown(root, LIST)] == ["ada", "root"]
    assert root.ask(DELETE, {"username": "ada"}) == (0, None)
    assert shown(root, GET, username="ada") is None
    assert shown(root, LIST, filter="ada") is None
    assert root.ask(DELETE, {"username": "ada"}) == (0, None)


def test_password_is_shown_to_servers_alone(tmp_path: Path) -> None:
    inner = Credentials("inner", "of-the-servers")
    credentials = json.dumps({"accessKey": inner.access_key, "secretKey": inner.secret_key})
    broker = asking_broker(str(tmp_path), inner_client_authentication_credentials=credentials)
    make_user(Signer(broker, ROOT), "ada", "planted")
    assert shown(Signer(broker, inner), GET, username="ada")["password"] == "planted"
    assert "password" not in shown(Signer(broker, ROOT), GET, username="ada")
    assert "password" not in str(shown(Signer(broker, inner), LIST))


def test_password_is_not_shown_to_who_only_names_the_servers_user(tmp_path: Path) -> None:
    credentials = json.dumps({"accessKey": "inner", "secretKey": "of-the-servers"})
    broker = asking_broker(
        str(tmp_path), authentication_enabled=False, inner_client_authentication_credentials=credentials
    )
    make_user(Signer(broker, ROOT), "ada", "planted")
    guesses = Signer(broker, Credentials("inner", "a guess"))
    assert "password" not in shown(guesses, GET, username="ada")


@pytest.mark.parametrize(
    ("code", "fields", "body", "expected"),
    [
        (CREATE, {"username": ""}, b"{}", (29, "The username is blank")),
        (CREATE, {"username": " "}, b'{"password":"x"}', (16, "username can not be blank")),
        (CREATE, {"username": "bob"}, b"{}", (16, "password can not be blank")),
        (CREATE, {"username": "root"}, b'{"password":"x"}', (16, "The user is existed")),
        (UPDATE, {"username": "bob"}, b'{"password":"x"}', (16, "The user is not exist")),
        (GET, {"username": ""}, b"", (29, "The username is blank")),
        (RequestCode.AUTH_GET_ACL, {"subject": "User:bob"}, b"", (16, "The subject is not exist.")),
        (RequestCode.AUTH_DELETE_ACL, {"subject": "User:bob"}, b"", (16, "The subject is not exist.")),
        (RequestCode.AUTH_DELETE_ACL, {"subject": "User:root"}, b"", (16, "The acl is not exist.")),
        (RequestCode.AUTH_DELETE_ACL, {"subject": "root"}, b"", (1, SYSTEM)),
        (RequestCode.AUTH_CREATE_ACL, {"subject": "User:root"}, b"{}", (1, "The body of acl is null")),
        (
            RequestCode.AUTH_DELETE_ACL,
            {"subject": "User:root", "resource": "Tpoic:T"},
            b"",
            (16, "The resource Tpoic:T is illegal."),
        ),
        (
            RequestCode.AUTH_CREATE_ACL,
            {"subject": "User:bob"},
            b'{"policies":[{"entries":[{"resource":"*","actions":["All"],"decision":"Allow"}]}]}',
            (16, "The subject of User:bob is not exist."),
        ),
    ],
)
def test_what_is_refused(root: Signer, code: int, fields: dict[str, str], body: bytes, expected: object) -> None:
    assert root.ask(code, fields, body) == expected


def test_super_users_are_made_by_super_users_alone(broker: BrokerInMemory, root: Signer) -> None:
    make_user(root, "ada")
    allow(root, "ada", "Cluster:*", "All")
    ada = Signer(broker, Credentials("ada", "secret"))
    body = b'{"password":"x","userType":"Super"}'
    assert ada.ask(CREATE, {"username": "bob"}, body) == (1, "The super user can only be create by super user")
    assert ada.ask(UPDATE, {"username": "ada"}, body) == (1, "The super user can only be update by super user")
    for code, sent in ((UPDATE, b'{"password":"mine"}'), (DELETE, b"")):
        refusal = (16, "The super user can only be update by super user")
        assert ada.ask(code, {"username": "root"}, sent) == refusal
    assert ada.ask(CREATE, {"username": "bob"}, b'{"password":"x"}') == (0, None)


def test_policies_are_shown_with_filters_and_forgotten_by_resource(root: Signer) -> None:
    make_user(root, "ada")
    assert shown(root, RequestCode.AUTH_GET_ACL, subject="User:ada") is None
    assert shown(root, RequestCode.AUTH_LIST_ACL) is None
    allow(root, "ada", "Topic:A", "Pub")
    allow(root, "ada", "Group:G", "Sub", source="10.0.0.0/8")
    topic = {"resource": "Topic:A", "actions": ["Pub"], "decision": "Allow"}
    group = {"resource": "Group:G", "actions": ["Sub"], "sourceIps": ["10.0.0.0/8"], "decision": "Allow"}
    whole = {"subject": "User:ada", "policies": [{"policyType": "Custom", "entries": [topic, group]}]}
    assert shown(root, RequestCode.AUTH_GET_ACL, subject="User:ada") == whole
    assert shown(root, RequestCode.AUTH_LIST_ACL, subjectFilter="ada", resourceFilter="Group") == [
        {"subject": "User:ada", "policies": [{"policyType": "Custom", "entries": [group]}]}
    ]
    assert shown(root, RequestCode.AUTH_LIST_ACL, subjectFilter="bob") is None
    assert root.ask(RequestCode.AUTH_DELETE_ACL, {"subject": "User:ada", "resource": "Topic:A"}) == (0, None)
    assert shown(root, RequestCode.AUTH_GET_ACL, subject="User:ada") == {
        "subject": "User:ada",
        "policies": [{"policyType": "Custom", "entries": [group]}],
    }
    assert root.ask(RequestCode.AUTH_DELETE_ACL, {"subject": "User:ada"}) == (0, None)
    assert shown(root, RequestCode.AUTH_GET_ACL, subject="User:ada") is None


def test_users_and_policies_outlive_the_broker_in_a_file_that_its_owner_reads_alone(tmp_path: Path) -> None:
    root = Signer(asking_broker(str(tmp_path)), ROOT)
    make_user(root, "ada")
    allow(root, "ada", "Topic:A", "Pub")
    path = tmp_path / "access.json"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(f"{path}.bak").st_mode) == 0o600
    again = asking_broker(str(tmp_path), init_authentication_user='{"username":"root","password":"changed"}')
    root = Signer(again, ROOT)
    assert [user["username"] for user in shown(root, LIST)] == ["ada", "root"]
    assert shown(root, RequestCode.AUTH_GET_ACL, subject="User:ada") is not None
    assert Signer(again, Credentials("root", "changed")).ask(LIST) == (16, "check signature failed.")


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    root = Signer(asking_broker(str(tmp_path / "config")), ROOT)
    (tmp_path / "config" / "access.json").unlink()
    (tmp_path / "config" / "access.json").mkdir()
    assert root.ask(CREATE, {"username": "ada"}, b'{"password":"x"}') == (1, SYSTEM)


def test_a_user_who_is_forgotten_takes_his_policies_along(root: Signer) -> None:
    make_user(root, "ada")
    allow(root, "ada", "Topic:A", "Pub")
    assert root.ask(DELETE, {"username": "ada"}) == (0, None)
    make_user(root, "ada")
    assert shown(root, RequestCode.AUTH_GET_ACL, subject="User:ada") is None


def test_no_answer_has_a_password(root: Signer) -> None:
    make_user(root, "ada", "planted")
    answers = [root.answer(code, {"username": "ada", "subject": "User:ada"}) for code in range(3001, 3011)]
    answers.append(root.answer(RequestCode.GET_BROKER_CONFIG))
    answers.append(root.answer(RequestCode.AUTH_GET_USER, {"username": "root"}))
    for answer in answers:
        for text in (answer.body, repr(answer.remark).encode(), repr(answer.ext_fields).encode()):
            assert SECRET.encode() not in text
            assert b"planted" not in text
