"""The key-value configuration and its file."""

from __future__ import annotations

import json
import os

import pytest
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.namesrv.kv_config import KVConfig


def loaded(path) -> KVConfig:
    config = KVConfig(str(path))
    config.load()
    return config


def put(config: KVConfig, namespace: str, key: str, value: str | None) -> None:
    changed = config.changed(namespace, key, value)
    if changed is not None:
        config.write(changed)
        config.show(changed)


def test_missing_file_is_an_empty_configuration(tmp_path):
    config = loaded(tmp_path / "kvConfig.json")
    assert (config.get("NS", "k"), config.namespace("NS")) == (None, None)


def test_keys_survive_a_restart(tmp_path):
    path = tmp_path / "deep" / "kvConfig.json"
    config = loaded(path)
    put(config, "NS", "k", "v")
    put(config, "NS", "ключ", "значение")
    put(config, "ORDER_TOPIC_CONFIG", "T", "a:2;b:4")
    put(config, "NS", "k", None)
    put(config, "NS", "absent", None)
    put(config, "absent", "k", None)
    again = loaded(path)
    for one in (config, again):
        assert one.namespace("NS") == {"ключ": "значение"}
        assert one.get("ORDER_TOPIC_CONFIG", "T") == "a:2;b:4"
    assert json.loads(path.read_bytes()) == {
        "configTable": {"NS": {"ключ": "значение"}, "ORDER_TOPIC_CONFIG": {"T": "a:2;b:4"}}
    }
    assert sorted(os.listdir(path.parent)) == ["kvConfig.json", "kvConfig.json.bak"]


def test_namespace_stays_after_its_last_key(tmp_path):
    config = loaded(tmp_path / "kvConfig.json")
    put(config, "NS", "k", "v")
    put(config, "NS", "k", None)
    assert config.namespace("NS") == {}


@pytest.mark.parametrize(
    "damage",
    [b"", b'{"configTable":{"NS":{"k"', b"[]", b"{}", b'{"configTable":{"NS":{"k":1}}}', b'{"configTable":7}', b"\xff"],
    ids=["empty", "torn", "list", "no table", "number", "no namespaces", "no text"],
)
def test_damaged_file_gives_way_to_its_backup(tmp_path, damage):
    path = tmp_path / "kvConfig.json"
    config = loaded(path)
    put(config, "NS", "k", "old")
    put(config, "NS", "k", "new")
    path.write_bytes(damage)
    with capturedLogs() as events:
        again = loaded(path)
    assert again.namespace("NS") == {"k": "old"}
    lines = [formatEvent(one) for one in events]
    assert lines[0].startswith(f"key-value configuration not read: file={path} error=")
    assert lines[1:] == [f"key-value configuration read: file={path}.bak namespaces=1"]
    put(again, "NS", "k", "newest")
    assert loaded(path).get("NS", "k") == "newest"


def test_start_with_both_files_damaged_is_empty(tmp_path):
    path = tmp_path / "kvConfig.json"
    path.write_bytes(b"{")
    (tmp_path / "kvConfig.json.bak").write_bytes(b"{")
    assert loaded(path).namespace("NS") is None


def test_what_cannot_be_written_changes_nothing(tmp_path):
    path = tmp_path / "kvConfig.json"
    config = loaded(path)
    put(config, "NS", "k", "v")
    (tmp_path / "kvConfig.json.tmp").mkdir()
    with pytest.raises(IsADirectoryError):
        put(config, "NS", "k", "w")
    with pytest.raises(IsADirectoryError):
        put(config, "NS", "k", None)
    assert (config.get("NS", "k"), loaded(path).get("NS", "k")) == ("v", "v")
