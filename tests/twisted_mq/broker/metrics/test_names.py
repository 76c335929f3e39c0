"""The tables of figures beside the names, kinds and labels of 5.3.3's exporter and of rocketmq-exporter."""

from __future__ import annotations

import json
from pathlib import Path

from twisted_mq.broker.metrics import builtin, exporter, own, pops, timer
from twisted_mq.metrics import process

APACHE = json.loads(Path(__file__).with_name("apache_names.json").read_text())
BUILTIN = (*builtin.FAMILIES, *timer.FAMILIES, *pops.FAMILIES)


def test_builtin_names_kinds_and_labels_are_apaches() -> None:
    for family in BUILTIN:
        kind, labels = APACHE["builtin"][family.name]
        assert (family.kind, list(family.labels)) == (kind, labels)


def test_names_and_labels_of_the_exporter_are_its_own() -> None:
    assert {one.name: list(one.labels) for one in exporter.FAMILIES} == {
        one.name: APACHE["exporter"][one.name] for one in exporter.FAMILIES
    }


def test_no_name_is_given_twice() -> None:
    names = [one.name for one in (*BUILTIN, *exporter.FAMILIES, *own.FAMILIES, *process.FAMILIES)]
    assert len(names) == len(set(names))


MISSING = {
    "rocketmq_pop_buffer_scan_time_consume": "there is no buffer to scan",
    **{name: "there is no RocksDB" for name in APACHE["builtin"] if name.startswith("rocketmq_rocksdb_")},
    "rocketmq_group_consume_tps": "rocketmq-exporter never fills it",
    "rocketmq_group_consume_total_offset": "rocketmq-exporter never fills it",
}
"""Names of both exporters that are not here, and why."""


def test_what_is_missing_of_apaches_names_is_known() -> None:
    here = {family.name for family in (*BUILTIN, *exporter.FAMILIES)}
    assert (APACHE["builtin"].keys() | APACHE["exporter"].keys()) - here == MISSING.keys()
