"""Pages of several brokers as one: read by Prometheus' own parser."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from twisted_mq.metrics.family import page_text
from twisted_mq.metrics.joined import joined


def page(*rows: tuple[tuple[str, ...], float], labels: tuple[str, ...] = ("topic", "kind")) -> bytes:
    gauge = GaugeMetricFamily("mq_g", "help", labels=labels)
    for values, value in rows:
        gauge.add_metric(values, value)
    counter = CounterMetricFamily("mq_c", "counts")
    counter.add_metric((), 3)
    spread = HistogramMetricFamily("mq_h", "spread", labels=("le_is_mine",))
    spread.add_metric(("x",), [("1", 1.0), ("+Inf", 2.0)], 4.0)
    return page_text([gauge, counter, spread])


def read(text: bytes) -> list[Metric]:
    return list(text_string_to_metric_families(text.decode()))


NAMES = st.text(min_size=1, max_size=8)
VALUES = st.text(max_size=12) | st.sampled_from([',broker="x"', '{broker="', "a b{c} d", "\\", "\n"])


@given(
    names=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    rows=st.lists(st.tuples(st.tuples(VALUES, VALUES), st.integers(0, 99)), max_size=4, unique_by=lambda row: row[0]),
)
def test_each_sample_has_its_brokers_name_and_families_stand_together(names, rows):
    text = page(*rows)
    found = read(joined((name, text) for name in names))
    alone = read(text)
    assert [(one.name, one.type, one.documentation) for one in found] == [
        (one.name, one.type, one.documentation) for one in alone
    ]
    for family, its_own in zip(found, alone, strict=True):
        assert [(one.name, one.labels, one.value) for one in family.samples] == [
            (one.name, {"broker": name, **one.labels}, one.value) for name in names for one in its_own.samples
        ]


def test_a_label_of_that_name_and_the_page_without_name_stay():
    for other in ("address", "topic"):  # labels are sorted
        text = page((("T", "b"), 1.0), labels=(other, "broker"))
        (gauge,) = [one for one in read(joined([("x", text)])) if one.name == "mq_g"]
        assert gauge.samples[0].labels == {other: "T", "broker": "b"}
    assert joined([("", text)]) == text
    assert joined([]) == b""
