"""The page holds the figures, escapes names, and needs nothing from outside."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import attrs
from pyspark.sql import Row

from tests.spark.report_samples import EMPTY, report, topic
from twisted_mq.spark.report.report_page import page
from twisted_mq.spark.source.log_stretch import Damage


class Rows(HTMLParser):
    """The texts of all table rows, and all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def test_tables_hold_the_figures() -> None:
    rows = Rows(page(report(topic("Orders", queues=2, duplicate_keys=1, extra=3)), "<svg></svg>")).rows
    assert rows[1] == ["Orders", "user", "2", "20", "3.9 KiB", "1 ms", "20 ms", "1.5 s", "3", "-", "-"]
    times = ["2026-11-20 23:18:54", "2026-11-20 23:19:54"]
    assert rows[3:5] == [["Orders", str(queue), "10", "2.0 KiB", "0..9", "-", *times] for queue in (0, 1)]


def test_gaps_duplicates_and_damage_are_listed() -> None:
    damage = Damage("00000000000000000000", 4096, 100, "magic 0x00000000 is not a message's")
    full = attrs.evolve(
        report(topic("Orders", duplicate_keys=70), damage=(damage,)),
        duplicates=(Row("Orders", "KEY", 0, 2, 1, 100, 900),),
    )
    gap = Row("store", "topic", "queueId", "firstMissing", "lastMissing", "missing", "after", "before")
    text = page(attrs.evolve(full, gaps=(gap("/store", "Orders", 0, 5, 7, 3, 1000, 1200),)), "<svg></svg>")
    rows = Rows(text).rows
    assert ["Orders", "0", "5..7", "3", "1000", "1200"] in rows
    assert ["Orders", "KEY", "0", "2", "1", "100", "900"] in rows
    assert ["00000000000000000000", "4096", "100", "magic 0x00000000 is not a message's"] in rows
    assert "The first 50 of 70." in text


def test_names_from_the_store_are_text_and_never_markup() -> None:
    text = page(report(topic("<script>alert(1)</script>")), "<svg></svg>")
    assert "script" not in Rows(text).tags
    assert Rows(text).rows[1][0] == "<script>alert(1)</script>"


def test_the_page_loads_nothing() -> None:
    text = page(report(topic("Orders")), "<?xml version='1.0'?><!DOCTYPE svg><svg id='p'></svg>")
    assert "<div class='card picture'><svg id='p'></svg></div>" in text
    assert not re.search(r"<(link|script|img|iframe)|@import|url\(", text)


def test_an_empty_store_says_so() -> None:
    text = page(EMPTY, "<svg></svg>")
    assert "0 commit log files, no messages" in text
    assert text.count("<p class=faint>none</p>") == 5
