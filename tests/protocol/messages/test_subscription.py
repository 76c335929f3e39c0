from __future__ import annotations

import attrs
import pytest

from twisted_mq.protocol.bodies import SubscriptionData
from twisted_mq.protocol.messages.subscription import (
    SubscriptionError,
    build_subscription,
    selected_codes,
    selects,
    split_tags,
)
from twisted_mq.protocol.text.java import java_hash


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_absent_empty_and_star_select_everything(expression: str | None) -> None:
    subscription = build_subscription("T", expression, sub_version=5)
    assert subscription == SubscriptionData(topic="T", sub_string="*", sub_version=5)
    assert selected_codes(subscription) is None
    assert [selects(subscription, tags) for tags in (None, "A")] == [True, True]


def test_tags_are_split_trimmed_and_hashed() -> None:
    subscription = build_subscription("T", "TagA || TagB||TagA || ", sub_version=5)
    codes = {java_hash("TagA"), java_hash("TagB")}
    assert subscription == SubscriptionData(
        topic="T",
        sub_string="TagA || TagB||TagA || ",
        tags_set={"TagA", "TagB"},
        code_set=codes,
        sub_version=5,
    )
    assert selected_codes(subscription) == codes
    assert [selects(subscription, tags) for tags in ("TagA", "TagB", "TagC", None)] == [True, True, False, False]


def test_a_tag_with_the_hash_of_another_is_told_apart_by_the_consumer() -> None:
    assert java_hash("Aa") == java_hash("BB")
    subscription = build_subscription("T", "Aa")
    assert selected_codes(subscription) == {java_hash("BB")}
    assert not selects(subscription, "BB")


@pytest.mark.parametrize(
    ("expression", "tags"),
    [("a|||b", ["a", "|b"]), (" \t|| a", ["a"]), ("a b", ["a b"]), ("\u3000a", ["\u3000a"]), ("| |", ["| |"])],
)
def test_splitting_follows_java(expression: str, tags: list[str]) -> None:
    assert split_tags(expression) == tags


@pytest.mark.parametrize("expression", ["||", "||||"])
def test_separators_alone_are_refused(expression: str) -> None:
    with pytest.raises(SubscriptionError, match="no tag"):
        build_subscription("T", expression)


def test_blanks_and_separators_select_nothing_as_in_apache() -> None:
    subscription = build_subscription("T", " || ")
    assert selected_codes(subscription) == frozenset()


def test_an_sql_expression_is_carried_as_it_is() -> None:
    subscription = build_subscription("T", "a > 5", "SQL92", sub_version=1)
    assert subscription == SubscriptionData(topic="T", sub_string="a > 5", expression_type="SQL92", sub_version=1)
    assert selected_codes(subscription) is None
    assert selects(subscription, None)


def test_an_empty_sql_expression_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="an empty SQL92 expression"):
        build_subscription("T", "", "SQL92")


def test_class_filters_leave_the_choice_to_others() -> None:
    subscription = attrs.evolve(build_subscription("T", "A"), class_filter_mode=True)
    assert selected_codes(subscription) is None
    assert selects(subscription, "B")
