"""Makes the store's configuration from the broker's options."""

from __future__ import annotations

import attrs

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.storage.config import FlushDiskType, StoreConfig

_SPELLED_BY_APACHE = {
    "warm_mapped_file_enable": "warm_maped_file_enable",
    "flush_least_pages_when_warm_mapped_file": "flush_least_pages_when_warm_maped_file",
}


def store_config(options: BrokerOptions, store_host: bytes) -> StoreConfig:
    """Return the store's configuration, each field with the value of the broker's key.

    The names are the same except for the `_ms` of times. A slave has no transient pool (Apache: TransientStorePool).
    """
    keys = {field.name: _key(field.name) for field in attrs.fields(StoreConfig)}
    values = {name: getattr(options, key) for name, key in keys.items() if hasattr(options, key)}
    values["flush_disk_type"] = FlushDiskType(options.flush_disk_type)
    values["transient_store_pool_enable"] = options.transient_store_pool_enable and not options.is_slave
    return StoreConfig(**values, store_host=store_host)


def _key(name: str) -> str:
    return _SPELLED_BY_APACHE.get(name, name.removesuffix("_ms"))
