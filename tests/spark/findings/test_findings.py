"""Findings in words, as a page, as pictures."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.spark.stores import BORN_MS
from twisted_mq.cli.spark.frame import write_page
from twisted_mq.spark.findings.findings import Bars, Figure, Findings, Kind, Table, bars, words
from twisted_mq.spark.findings.page import page

TOPICS = Table("Topics", {"topic": Kind.TEXT, "bytes": Kind.BYTES, "stored": Kind.TIME}, (("<b>", 1536, BORN_MS),), 7)


def test_values_in_words() -> None:
    found = [words(kind, value) for kind, value in ((Kind.COUNT, 1234), (Kind.PLAIN, 1234), (Kind.BYTES, 1536))]
    assert found == ["1,234", "1234", "1.5 KiB"]
    assert [words(Kind.SPAN, 1500), words(Kind.TIME, BORN_MS), words(Kind.TEXT, None)] == [
        "1.5 s",
        "2026-11-20 23:18:54",
        "-",
    ]


def test_faults_make_findings_unsound() -> None:
    assert Findings("x", (Figure("lost", 0, fault=True), Figure("messages", 7))).sound
    assert not Findings("x", (Figure("lost", 1, fault=True),)).sound
    assert Findings("x", tables=(TOPICS,)).sound
    assert not Findings("x", tables=(Table("Gaps", {"topic": Kind.TEXT}, (("T",),), 1, fault=True),)).sound


def test_bars_of_a_table() -> None:
    assert bars("Bytes", TOPICS, "topic", "bytes") == Bars("Bytes", ("<b>",), (1536.0,), Kind.BYTES)
    times = bars("Bytes", TOPICS, "stored", "bytes")
    assert (times.labels, times.of_times) == (("2026-11-20 23:18:54",), True)


def test_the_page_has_all_of_it_and_loads_nothing() -> None:
    empty = Table("Gaps", {"topic": Kind.TEXT}, (), 0, fault=True)
    pictures = (bars("Bytes", TOPICS, "topic", "bytes"), bars("When", TOPICS, "stored", "bytes"), Bars("None", (), ()))
    text = page(Findings("volume", (Figure("lost", 2, fault=True),), (TOPICS, empty), pictures), "/data/store")
    assert "<title>RocketMQ: volume</title>" in text and "/data/store" in text
    assert "<div class='tile bad'><b>2</b>lost</div>" in text
    assert "<td class='text'>&lt;b&gt;</td><td class='number'>1.5 KiB</td>" in text
    assert "The first 1 of 7." in text and text.count("<p class=faint>none</p>") == 1
    assert text.count("<svg") == 1 and "no messages" in text
    assert not re.search(r"<(link|script|img|iframe)|@import|url\((?!#)", text)


def test_a_page_names_a_path_whose_bytes_are_not_utf8(tmp_path: Path) -> None:
    write_page(Findings("volume"), os.fsdecode(b"/data/\xff"), str(tmp_path / "page.html"))
    assert r"/data/\udcff" in (tmp_path / "page.html").read_text()
