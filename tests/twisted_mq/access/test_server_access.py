"""Access control from a server's settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.access import ON, ROOT, SECRET, Signer, access_of
from tests.support.broker import BrokerInMemory
from twisted_mq.access.secrets import credentials_of_tools
from twisted_mq.config.errors import ConfigError
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.signature import Credentials

INNER = json.dumps({"accessKey": "inner", "secretKey": SECRET})


def test_without_settings_nothing_is_read_written_or_asked(tmp_path: Path) -> None:
    access = access_of(str(tmp_path / "none"))
    assert (access.checks, access.accounts, access.plain, access.credentials) == ((), None, None, None)
    assert access.processors == {}
    assert os.listdir(tmp_path) == []


def test_the_first_users_are_super_users(tmp_path: Path) -> None:
    access = access_of(str(tmp_path), **ON, inner_client_authentication_credentials=INNER)
    assert access.credentials == Credentials("inner", SECRET)
    assert access.accounts is not None
    assert {name: user.user_type for name, user in access.accounts.users.items()} == {"root": "Super", "inner": "Super"}


def test_users_can_be_made_before_anybody_is_asked(tmp_path: Path) -> None:
    provider = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
    access = access_of(str(tmp_path), authentication_metadata_provider=provider)
    assert access.checks == ()
    stranger = Signer(BrokerInMemory(access=access), None)
    assert stranger.ask(RequestCode.AUTH_CREATE_USER, {"username": "ada"}, b'{"password":"x"}') == (0, None)


PLAIN = """
accounts:
  - {accessKey: accountA, secretKey: secret-of-a, topicPerms: [T=PUB, U=DENY], groupPerms: [G=PUB|SUB],
     defaultTopicPerm: SUB}
  - {accessKey: rootroot, secretKey: secret-of-b, admin: true}
"""


def test_accounts_become_users(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text(PLAIN)
    settings = {**ON, "migrate_auth_from_v1_enabled": True, "rocketmq_home": str(tmp_path)}
    broker = BrokerInMemory(access=access_of(str(tmp_path), **settings))
    root = Signer(broker, ROOT)
    users = json.loads(root.answer(RequestCode.AUTH_LIST_USER).body)
    assert {user["username"]: user["userType"] for user in users} == {
        "root": "Super", "accountA": "Normal", "rootroot": "Super"
    }  # fmt: skip
    policies = json.loads(root.answer(RequestCode.AUTH_GET_ACL, {"subject": "User:accountA"}).body)["policies"]
    assert policies == [
        {
            "policyType": "Custom",
            "entries": [
                {"resource": "Topic:T", "actions": ["Pub"], "decision": "Allow"},
                {"resource": "Topic:U", "actions": ["All"], "decision": "Deny"},
                {"resource": "Group:G", "actions": ["Pub", "Sub"], "decision": "Allow"},
            ],
        },
        {
            "policyType": "Default",
            "entries": [
                {"resource": "Topic:*", "actions": ["Sub"], "decision": "Allow"},
                {"resource": "Group:*", "actions": ["All"], "decision": "Deny"},
            ],
        },
    ]
    assert root.ask(RequestCode.AUTH_DELETE_USER, {"username": "rootroot"}) == (0, None)
    again = access_of(str(tmp_path), **settings)
    assert again.accounts is not None and "rootroot" in again.accounts.users


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"acl_enable": True, "rocketmq_home": None}, "aclEnable=true: set rocketmqHome or ROCKETMQ_HOME"),
        ({"acl_enable": True, "rocketmq_home": "/nowhere"}, "aclEnable=true: no accounts in /nowhere/conf"),
        ({"init_authentication_user": "{planted"}, "initAuthenticationUser=(secret): must be JSON of the form"),
        ({"init_authentication_user": '{"username":"planted"}'}, "initAuthenticationUser=(secret): both members"),
        (
            {"inner_client_authentication_credentials": '["planted"]'},
            "innerClientAuthenticationCredentials=(secret): must be JSON of the form",
        ),
        ({"authentication_whitelist": "10,x"}, "authenticationWhitelist=10,x: x is not a request code"),
        ({"authorization_strategy": "mine"}, "authorizationStrategy=mine: must be one of org.apache"),
        ({"authentication_metadata_provider": "x"}, "authenticationMetadataProvider=x: must be one of org.apache"),
    ],
)
def test_what_cannot_be_is_said_without_a_secret(tmp_path: Path, settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        access_of(str(tmp_path), **{"authentication_enabled": True, **settings})
    assert str(caught.value).startswith(said)
    assert "planted" not in str(caught.value)


def test_credentials_of_administrators(tmp_path: Path) -> None:
    assert credentials_of_tools(None) is None
    assert credentials_of_tools(str(tmp_path)) is None
    (tmp_path / "conf").mkdir()
    path = tmp_path / "conf" / "tools.yml"
    path.write_text("accessKey: rocketmq2\nsecretKey: 12345678\n")
    assert credentials_of_tools(str(tmp_path)) == Credentials("rocketmq2", "12345678")
    path.write_text("accessKey: rocketmq2\n")
    assert credentials_of_tools(str(tmp_path)) is None
    path.write_text("{planted")
    with pytest.raises(ValueError, match=r"tools\.yml: not valid YAML$"):
        credentials_of_tools(str(tmp_path))
