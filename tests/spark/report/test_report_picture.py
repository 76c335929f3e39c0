"""The picture is drawn from any report."""

from __future__ import annotations

import pytest

from tests.spark.report_samples import EMPTY, report, topic
from twisted_mq.spark.report.picture_parts import picture_bytes
from twisted_mq.spark.report.report_data import StoreReport
from twisted_mq.spark.report.report_picture import TOPICS_SHOWN, draw_report

MANY = report(*(topic(f"Topic{number:02}", messages=number + 1) for number in range(40)), topic("SELF_TEST_TOPIC"))


@pytest.mark.parametrize("drawn", [EMPTY, MANY, report(topic("$x^2$<b>" + "n" * 100))], ids=["empty", "many", "odd"])
def test_both_kinds_of_file(drawn: StoreReport) -> None:
    figure = draw_report(drawn)
    assert picture_bytes(figure, "png").startswith(b"\x89PNG\r\n")
    svg = picture_bytes(figure, "svg").decode()
    assert svg.rstrip().endswith("</svg>")
    assert "no messages" in svg or drawn is not EMPTY


def test_of_many_topics_the_largest_are_shown() -> None:
    svg = picture_bytes(draw_report(MANY), "svg").decode()
    assert f"Messages a topic ({TOPICS_SHOWN} of 41)" in svg
    assert "Topic39" in svg
    assert "Topic00" not in svg


def test_long_and_odd_names_stay_text() -> None:
    svg = picture_bytes(draw_report(report(topic("$x^2$<b>" + "n" * 100))), "svg").decode()
    assert "$x^2$&lt;b&gt;" in svg
    assert "…" in svg
