"""Configuration values."""

from __future__ import annotations

from typing import Any

import pytest

from twisted_mq.storage.config import StoreConfig, physical_memory_bytes


def test_defaults_are_apaches() -> None:
    config = StoreConfig(store_path_root_dir="/root")
    assert (config.mapped_file_size_commit_log, config.mapped_file_size_consume_queue) == (1073741824, 6000000)
    assert (config.max_message_size, config.flush_disk_type.value) == (4194304, "ASYNC_FLUSH")
    assert config.hot_bytes == int(physical_memory_bytes() * 0.4)
    assert config.paths.commit_log == "/root/commitlog"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("mapped_file_size_commit_log", 0, "mapped_file_size_commit_log must be positive, got 0"),
        ("mapped_file_size_consume_queue", 6001, "mapped_file_size_consume_queue must be a multiple of 20, got 6001"),
        ("mapped_file_size_consume_queue", 0, "mapped_file_size_consume_queue must be a multiple of 20, got 0"),
        ("max_message_size", -1, "max_message_size must be positive, got -1"),
    ],
)
def test_wrong_values_are_named(field: str, value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        StoreConfig(store_path_root_dir="/root", **{field: value})
