"""The deciding rule of a user."""

from __future__ import annotations

import pytest

from twisted_mq.access.policies import Decision, Policies, PolicyType, parse_policies, policies_info
from twisted_mq.access.resources import Pattern, Resource, ResourceType, group, parse_resource, topic
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.rights import Action


def entry(resource: str, actions: str = "All", decision: str = "Allow", *source_ips: str) -> PolicyEntryInfo:
    return PolicyEntryInfo(resource, actions.split(","), list(source_ips) or None, decision)


def policies(*custom: PolicyEntryInfo, default: tuple[PolicyEntryInfo, ...] = ()) -> Policies:
    kinds = (("Custom", custom), ("Default", default))
    return parse_policies(AclInfo("User:ada", [PolicyInfo(kind, list(rules)) for kind, rules in kinds if rules]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*", Resource(ResourceType.ANY, None, Pattern.ANY)),
        ("Topic:T", Resource(ResourceType.TOPIC, "T")),
        ("topic:T", Resource(ResourceType.TOPIC, "T")),
        ("Group:*", Resource(ResourceType.GROUP, None, Pattern.ANY)),
        ("Topic:Or*", Resource(ResourceType.TOPIC, "Or", Pattern.PREFIXED)),
        ("Cluster:a:b", Resource(ResourceType.CLUSTER, "a:b")),
        ("Tpoic:T", None),
        (" ", None),
        (None, None),
    ],
)
def test_resources_are_read_as_policies_have_them(text: str | None, expected: Resource | None) -> None:
    assert parse_resource(text) == expected
    if expected is not None and text is not None:
        assert str(expected) == text.replace("topic:", "Topic:")


def test_a_retry_topic_is_its_group() -> None:
    assert topic("%RETRY%G") == group("G") == group("%RETRY%G") == Resource(ResourceType.GROUP, "G")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], None),
        ([entry("Topic:U")], None),
        ([entry("Group:Orders")], None),
        ([entry("Topic:Orders", "Sub")], None),
        ([entry("Topic:Orders", "Sub,Pub")], "Allow"),
        ([entry("*")], "Allow"),
        ([entry("Topic:Orders", "Pub", "Allow", "10.0.0.0/8", "127.0.0.1")], "Allow"),
        ([entry("Topic:Orders", "Pub", "Allow", "10.0.0.0/8")], None),
        ([entry("Topic:Orders"), entry("*", "All", "Deny")], "Allow"),
        ([entry("*", "All", "Deny"), entry("Topic:Orders")], "Allow"),
        ([entry("Topic:Orders", "All", "Deny"), entry("Topic:*")], "Deny"),
        ([entry("Topic:*"), entry("Topic:Orders", "All", "Deny")], "Deny"),
        ([entry("Topic:O*", "All", "Deny"), entry("Topic:Ord*")], "Allow"),
        ([entry("Topic:Ord*"), entry("Topic:O*", "All", "Deny")], "Allow"),
        ([entry("Topic:Orders"), entry("Topic:Orders", "All", "Deny")], "Deny"),
        ([entry("Topic:Orders", "All", "Deny"), entry("Topic:Orders")], "Deny"),
    ],
)
def test_the_rule_that_says_most_about_the_resource_decides(rules, expected: str | None) -> None:
    """Whatever the order in which they were made; a policy that contradicts itself denies."""
    decided = (
        policies(*rules).decision(topic("Orders"), (Action.PUB,), "127.0.0.1")
        if rules
        else Policies().decision(topic("Orders"), (Action.PUB,), "127.0.0.1")
    )
    assert decided == (None if expected is None else Decision(expected))


def test_the_default_policy_counts_where_no_custom_rule_is_about_it() -> None:
    rules = policies(entry("Topic:*", "Pub", "Deny"), default=(entry("Topic:Orders"),))
    assert rules.decision(topic("Orders"), (Action.PUB,), "::1") is Decision.DENY
    assert rules.decision(topic("Orders"), (Action.SUB,), "::1") is Decision.ALLOW


def test_one_of_several_rights_is_enough() -> None:
    assert policies(entry("Topic:T", "Get")).decision(topic("T"), (Action.SUB, Action.GET), "::1") is Decision.ALLOW


def test_a_new_rule_takes_the_place_of_the_one_about_the_same_resource() -> None:
    old = policies(entry("Topic:A", "Pub"), entry("Topic:B", "Pub"))
    new = old.updated(policies(entry("Topic:B", "Sub", "Deny"), entry("Topic:C"), default=(entry("*", "Get"),)))
    assert new == policies(
        entry("Topic:A", "Pub"), entry("Topic:B", "Sub", "Deny"), entry("Topic:C"), default=(entry("*", "Get"),)
    )
    assert new.without(PolicyType.CUSTOM, topic("B")).without(PolicyType.DEFAULT, parse_resource("*")) == policies(
        entry("Topic:A", "Pub"), entry("Topic:C")
    )


def test_policies_are_shown_as_they_were_given() -> None:
    given = AclInfo(
        "User:ada",
        [
            PolicyInfo("Custom", [entry("Topic:Or*", "Pub,Sub", "Allow", "10.0.0.0/8")]),
            PolicyInfo("Default", [entry("*", "All", "Deny")]),
        ],
    )
    assert policies_info("User:ada", parse_policies(given)) == given
    assert policies_info("User:ada", parse_policies(given), "Topic") == AclInfo("User:ada", given.policies[:1])


@pytest.mark.parametrize(
    ("rule", "remark"),
    [
        (entry("Tpoic:T"), "The resource is null."),
        (entry("Topic:T", "Fly"), "The actions is empty."),
        (entry("Topic:T", "Any"), "The actions can not be Any."),
        (entry("Topic:T", "Pub", "Perhaps"), "The decision is null or illegal."),
        (entry("Topic:T", "Pub", "Allow", " "), "The source ip is empty."),
        (entry("Topic:T", "Pub", "Allow", "10.0.0.0/33"), "The source ip is invalid."),
        (entry("Topic:T", "Pub", "Allow", "localhost"), "The source ip is invalid."),
    ],
)
def test_what_makes_no_policy_is_refused(rule: PolicyEntryInfo, remark: str) -> None:
    with pytest.raises(BrokerError) as caught:
        policies(rule)
    assert (caught.value.response_code, caught.value.remark) == (16, remark)


def test_a_policy_without_rules_is_refused() -> None:
    with pytest.raises(BrokerError, match="The policies is empty"):
        parse_policies(AclInfo("User:ada", [PolicyInfo("Custom", [])]))
