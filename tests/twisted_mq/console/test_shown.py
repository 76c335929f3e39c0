"""Display of values on pages: bodies, names, numbers, times; subscriptions and traces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.console.bodies import MOST_HEX_BYTES, MOST_TEXT_BYTES, BodyView, body_view, hex_rows
from twisted_mq.console.forms import count, link, percent, size, span, visible, when
from twisted_mq.console.rendering import environment
from twisted_mq.console.subscriptions import TopicConflict, conflicts
from twisted_mq.console.timeline import WIDTH, Bar, Timeline, TimelineStep, timeline
from twisted_mq.console.visit import ListPage, cut
from twisted_mq.protocol.bodies import ConsumerRunningInfo
from twisted_mq.protocol.bodies.heartbeat import SubscriptionData
from twisted_mq.protocol.messages.trace import ConsumeEndTrace, ConsumeStartTrace, PublishTrace


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"plain", "", BodyView("text", "plain")),
        (b"", "", BodyView("text", "")),
        (b'{"a": 1}', "", BodyView("json", '{\n  "a": 1\n}')),
        (b"17", "", BodyView("text", "17")),
        (b"17", "json", BodyView("json", "17")),
        (b"no json", "json", BodyView("json", problem="The body is not JSON.")),
        (b"[" * 5000, "json", BodyView("json", problem="The body is not JSON.")),
        (b'{"a": 1}', "text", BodyView("text", '{"a": 1}')),
        (b"\xff\xfe", "", BodyView("hex", "00000000  ff fe                                            ..")),
        (b"\xffx", "text", BodyView("text", "\ufffdx")),
        ("a\u202eb\x1b[0m\n".encode(), "text", BodyView("text", "a\\u202eb\\u001b[0m\n")),
        (b"x" * (MOST_TEXT_BYTES + 5), "text", BodyView("text", "x" * MOST_TEXT_BYTES, 5)),
        (("x" + "\u00e4" * MOST_TEXT_BYTES).encode()[: MOST_TEXT_BYTES + 9], "", "text"),
    ],
)  # fmt: skip
def test_body_views(body, kind, expected):
    view = body_view(body, kind)
    assert (view.kind if isinstance(expected, str) else view) == expected


def test_hex_shows_rows_of_sixteen_and_says_what_it_leaves_out():
    assert hex_rows(b"hello\x00 world, 17 b") == (
        "00000000  68 65 6c 6c 6f 00 20 77 6f 72 6c 64 2c 20 31 37  hello. world, 17\n"
        "00000010  20 62                                             b"
    )
    assert body_view(b"\x00" * (MOST_HEX_BYTES + 3), "").cut == 3


@given(st.binary(max_size=300), st.sampled_from(["", "text", "json", "hex"]))
def test_any_body_has_a_view_in_which_nothing_hides(body, kind):
    text = body_view(body, kind).text
    assert all(letter.isprintable() or letter in "\n\t" or letter.isspace() for letter in text)


@given(st.text())
def test_templates_escape_whatever_they_show(text):
    shown = environment().from_string("<p title='{{ value }}'>{{ value }}</p>").render(value=text)
    inside = shown.removeprefix("<p title='").removesuffix("</p>")
    assert not {"<", '"'} & set(inside.replace("'>", "", 1))


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (count(1234567), "1\u2009234\u2009567"),
        (count(0.25), "0.2"),
        (count(None), "—"),
        (size(0), "0 B"),
        (size(1536), "1.5 KiB"),
        (size(3 << 40), "3.0 TiB"),
        (span(59.9), "59 s"),
        (span(61), "1 min"),
        (span(3 * 86400 + 4 * 3600), "3 d 4 h"),
        (span(None), "—"),
        (percent(0.755), "76 %"),
        (when(1795218105284), "2026-11-20 23:41:45.284"),
        (when(0), "—"),
        (when(1 << 62), "—"),
        (visible("a\tb\u2066c"), "a\tb\\u2066c"),
        (visible("\U000e0041"), "\\U000e0041"),
        (link("/topic", name="a&b=<c>", page=None), "/topic?name=a%26b%3D%3Cc%3E"),
        (link("/topic"), "/topic"),
    ],
)
def test_values(shown, text):
    assert shown == text


def test_pages_of_a_list():
    rows = [str(number) for number in range(101)]
    assert cut(rows, 3) == ListPage(["100"], 3, 3, 101)
    assert cut(rows, 9) == ListPage(["100"], 3, 3, 101)
    assert cut([], 1) == ListPage([], 1, 1, 0)


def wants(**expressions: str) -> ConsumerRunningInfo:
    return ConsumerRunningInfo(
        subscription_set=[SubscriptionData(topic=topic, sub_string=text) for topic, text in expressions.items()]
    )


def test_members_that_want_different_things_are_named():
    assert conflicts({"a": wants(T="*"), "b": wants(T="*")}) == []
    assert conflicts({"a": wants(T="*", U="x"), "b": wants(T="new")}) == [
        TopicConflict("T", {"*": ["a"], "new": ["b"]}),
        TopicConflict("U", {"x": ["a"], "not subscribed": ["b"]}),
    ]


def test_traces_become_bars_of_one_course_of_time():
    published = PublishTrace(timestamp=1000, group="shop", msg_id="id", cost_ms=100, store_host="broker:1")
    begun = ConsumeStartTrace(timestamp=1500, group="audit", request_id="r", msg_id="id", retry_times=1)
    ended = ConsumeEndTrace(request_id="r", msg_id="id", cost_ms=500, success=False, timestamp=2000, group="audit")
    sent = TimelineStep("sent", "shop", "host", 1000, 1100, True, "to broker:1")
    consumed = TimelineStep("consumed", "audit", "host", 1500, 2000, False, "attempt 2")
    found = timeline([(ended, "host"), (begun, "host"), (published, "host")])
    assert found == Timeline([Bar(sent, 0, 60), Bar(consumed, 298, 298)], 1000, 2000)
    assert found is not None and max(bar.left + bar.width for bar in found.bars) <= WIDTH
    assert timeline([]) is None
