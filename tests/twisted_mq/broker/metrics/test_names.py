"""The tables of figures beside the names, kinds and labels of 5.3.3's exporter and of rocketmq-exporter."""

from __future__ import annotations

import json
from pathlib import Path

from twisted_mq.broker.metrics import builtin, exporter, own
from twisted_mq.metrics import process

APACHE = json.loads(Path(__file__).with_name("apache_names.json").read_text())
STORAGE = ("storage_type", "storage_medium")


def test_builtin_names_kinds_and_labels_are_apaches() -> None:
    for family in builtin.FAMILIES:
        kind, labels = APACHE["builtin"][family.name]
        assert (family.kind, list(family.labels)) == (kind, labels)


def test_names_and_labels_of_the_exporter_are_its_own() -> None:
    assert {one.name: list(one.labels) for one in exporter.FAMILIES} == {
        one.name: APACHE["exporter"][one.name] for one in exporter.FAMILIES
    }


def test_no_name_is_given_twice() -> None:
    names = [one.name for one in (*builtin.FAMILIES, *exporter.FAMILIES, *own.FAMILIES, *process.FAMILIES)]
    assert len(names) == len(set(names))
