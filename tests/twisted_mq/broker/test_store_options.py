"""The broker's keys that the store is configured with."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.store_options import store_config
from twisted_mq.storage.config import FlushDiskType

OTHER_NAMES = {
    "sync_flush_timeout": "sync_flush_timeout_ms",
    "flush_interval_commit_log": "flush_interval_commit_log_ms",
    "commit_interval_commit_log": "commit_interval_commit_log_ms",
    "redelete_hanged_file_interval": "redelete_hanged_file_interval_ms",
    "warm_maped_file_enable": "warm_mapped_file_enable",
    "flush_least_pages_when_warm_maped_file": "flush_least_pages_when_warm_mapped_file",
}
CHANGED: dict[str, Any] = {
    **dict.fromkeys(OTHER_NAMES, 77),
    "warm_maped_file_enable": True,
    "mapped_file_size_commit_log": 1 << 16,
    "delete_when": "05",
    "transient_store_pool_enable": True,
    "message_index_enable": False,
}


def options(**changes: Any) -> BrokerOptions:
    return BrokerOptions(broker_name="b", store_path_root_dir="/nowhere", **changes)


@pytest.mark.parametrize("key", CHANGED)
def test_a_key_reaches_the_store(key: str) -> None:
    name = OTHER_NAMES.get(key, key)
    before, after = store_config(options(), b""), store_config(options(**{key: CHANGED[key]}), b"")
    assert getattr(after, name) == CHANGED[key] != getattr(before, name)
    assert attrs.evolve(before, **{name: CHANGED[key]}) == after


def test_the_rule_of_flushing_is_a_value() -> None:
    config = store_config(options(flush_disk_type="SYNC_FLUSH"), b"host")
    assert (config.flush_disk_type, config.store_host) == (FlushDiskType.SYNC_FLUSH, b"host")


def test_a_slave_has_no_transient_pool() -> None:
    config = store_config(options(transient_store_pool_enable=True, broker_role="SLAVE"), b"")
    assert not config.transient_store_pool_enable
