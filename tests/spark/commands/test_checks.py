"""Audits of recorded stores beside what `mq store verify` says."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from twisted_mq.spark.commands.checks import audit
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.storage.tools.verify import verify


def test_a_sound_store_says_what_verify_says(session: SparkSession, captured: Callable[[str], str]) -> None:
    found = audit(Stores.opened(session, [captured("st")]), 50, None)
    said = verify(captured("st"))
    assert said.sound and found.sound
    figures = [one.value for one in found.figures]
    assert figures[:4] == [said.messages, said.message_bytes, said.entries, said.index_entries]
