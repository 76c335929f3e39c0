"""The list of damaged stretches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark.stores import StoreWriter
from tests.support.forms import each_form as each_form
from twisted_mq.spark.errors import NoCommitLog
from twisted_mq.spark.source.damage import list_damage
from twisted_mq.spark.source.log_stretch import Damage


def test_a_sound_store_has_none(captured: Callable[[str], str]) -> None:
    assert list_damage(captured("st")) == []


def test_every_stretch_is_listed(writer: StoreWriter) -> None:
    for _ in range(4):
        writer.append()
    writer.overwrite(writer.positions[1] + 4, b"gone")
    size = writer.positions[1]
    assert list_damage(writer.write()) == [Damage(f"{0:020d}", size, size, "magic 0x676F6E65 is not a message's")]


def test_no_store() -> None:
    with pytest.raises(NoCommitLog):
        list_damage("/nowhere/store")
