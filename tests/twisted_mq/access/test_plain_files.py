"""Accounts of access control 1.0 in their files, and what happens when these change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.access.plain_accounts import Permission, PlainAccount
from twisted_mq.access.plain_files import PlainFiles
from twisted_mq.config.errors import ConfigError

ADA = """
globalWhiteRemoteAddresses:
  - 10.10.103.*
accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
    groupPerms:
      - groupC = SUB
"""


def account(key: str, **more: str) -> str:
    return "accounts:\n  - " + "\n    ".join(
        f"{name}: {value}" for name, value in {"accessKey": key, "secretKey": "planted-secret", **more}.items()
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "conf" / "acl" / "deeper").mkdir(parents=True)
    (tmp_path / "conf" / "plain_acl.yml").write_text(ADA)
    return tmp_path


def loaded(home: Path) -> PlainFiles:
    files = PlainFiles(str(home))
    files.load()
    return files


def test_the_default_file(home: Path) -> None:
    accounts = loaded(home).accounts
    assert dict(accounts.accounts) == {
        "RocketMQ": PlainAccount(
            "RocketMQ",
            "12345678",
            [],
            default_group=Permission.SUB,
            topics={"topicA": Permission.DENY, "topicB": Permission.PUB | Permission.SUB},
            groups={"groupC": Permission.SUB},
        )
    }
    assert len(accounts.white_list) == 1


def test_all_files_of_the_folder_count_an_access_key_where_it_stands_first(home: Path) -> None:
    (home / "conf" / "acl" / "a.yml").write_text(account("RocketMQ", admin="true"))
    (home / "conf" / "acl" / "deeper" / "b.yaml").write_text(account("accountB"))
    (home / "conf" / "acl" / "notes.txt").write_text("no account")
    with capturedLogs() as events:
        accounts = loaded(home).accounts
    assert sorted(accounts.accounts) == ["RocketMQ", "accountB"]
    assert accounts.accounts["RocketMQ"].admin
    assert [formatEvent(one) for one in events] == ["accessKey RocketMQ is in several files"]


def change(path: Path, text: str) -> None:
    """With another time of change, however coarse the file system's clock is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_a_changed_file_and_a_new_one_are_read_again(home: Path) -> None:
    files = loaded(home)
    files.look()
    change(home / "conf" / "plain_acl.yml", account("accountB"))
    (home / "conf" / "acl" / "c.yml").write_text(account("accountC"))
    files.look()
    assert sorted(files.accounts.accounts) == ["accountB", "accountC"]
    (home / "conf" / "acl" / "c.yml").unlink()
    files.look()
    assert sorted(files.accounts.accounts) == ["accountB"]


@pytest.mark.parametrize(
    "damage",
    [
        "accounts: [planted-secret",
        "accounts:\n  - secretKey: planted-secret\n",
        "accounts: planted-secret",
        "- planted-secret",
        account("accountB", topicPerms="[T]"),
        account("accountB", whiteRemoteAddress="10.0.0.999"),
        "\x00planted-secret",
        "secretKey: *planted-secret",
    ],
)
def test_damage_while_it_runs_leaves_the_accounts_and_is_said_once(home: Path, damage: str) -> None:
    files = loaded(home)
    before = files.accounts
    change(home / "conf" / "plain_acl.yml", damage)
    with capturedLogs() as events:
        files.look()
        files.look()
    assert files.accounts is before
    (said,) = [formatEvent(one) for one in events]
    assert said.startswith(f"accounts not reloaded: {home}/conf/plain_acl.yml")
    assert "planted-secret" not in said
    change(home / "conf" / "plain_acl.yml", ADA)
    files.look()
    assert sorted(files.accounts.accounts) == ["RocketMQ"]


def test_damage_at_the_start_is_an_error(home: Path) -> None:
    (home / "conf" / "plain_acl.yml").write_text("accounts:\n  - accessKey: short\n    secretKey: planted\n")
    with pytest.raises(ConfigError) as caught:
        loaded(home)
    assert str(caught.value) == (
        f"aclEnable=true: {home}/conf/plain_acl.yml: the accessKey of accessKey=short must be longer than 6 characters"
    )


def test_no_file_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no accounts in "):
        loaded(tmp_path)
