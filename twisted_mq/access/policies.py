"""Holds a user's policies (Apache: Acl, Policy, PolicyEntry): what the user may do on which resources, from which addresses.

The rules of the custom policy come first; those of the default policy count only if no custom rule is about the request.
Among several rules, the one with the exact name decides, then the longest prefix of a name, then all of a kind, then `*`.
Rules of the same rank that contradict each other deny. (5.3.3 sorts them otherwise: of a name and a prefix the rule made
last decides, of two prefixes the shorter one, and allow beats deny. The order here is that of its documentation, and of
its later versions.)
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Iterable, Sequence

import attrs

from twisted_mq.access.resources import Pattern, Resource, ResourceType, parse_resource
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.rights import Action


class Decision(enum.StrEnum):
    """The decision of a rule (Apache: Decision)."""

    ALLOW = "Allow"
    DENY = "Deny"


class PolicyType(enum.StrEnum):
    """The kind of a policy (Apache: PolicyType)."""

    CUSTOM = "Custom"
    DEFAULT = "Default"


_ACTIONS = {one.value.lower(): one for one in Action}
_DECISIONS = {one.value.lower(): one for one in Decision}
_POLICY_TYPES = {one.value.lower(): one for one in PolicyType}


def refused(remark: str) -> BrokerError:
    """Return the error to raise for something that is not permitted."""
    return BrokerError(ResponseCode.NO_PERMISSION, remark)


@attrs.frozen
class Rule:
    """A rule of a policy. Without addresses it applies to all of them."""

    resource: Resource
    actions: tuple[Action, ...]
    source_ips: tuple[str, ...]
    decision: Decision

    def is_about(self, resource: Resource, actions: Sequence[Action], source_ip: str) -> bool:
        """Return True if the rule decides on such a request; one of the actions is enough."""
        if not self.resource.covers(resource):
            return False
        if Action.ALL not in self.actions and not any(action in self.actions for action in actions):
            return False
        return not self.source_ips or any(is_in_range(source_ip, one) for one in self.source_ips)

    @property
    def rank(self) -> tuple[bool, Pattern, int, bool]:
        """Return the rank. The highest rank decides."""
        resource = self.resource
        return (
            resource.type is not ResourceType.ANY,
            resource.pattern,
            len(resource.name or ""),
            self.decision is Decision.DENY,
        )


@attrs.frozen
class Policies:
    """All rules of one user, in the order in which they were made."""

    custom: tuple[Rule, ...] = ()
    default: tuple[Rule, ...] = ()

    def decision(self, resource: Resource, actions: Sequence[Action], source_ip: str) -> Decision | None:
        """Return the decision on a request; None if no rule is about it."""
        for rules in (self.custom, self.default):
            matching = [rule for rule in rules if rule.is_about(resource, actions, source_ip)]
            if matching:
                return max(matching, key=lambda rule: rule.rank).decision
        return None

    def refusal(self, name: str, resource: Resource, actions: Sequence[Action], source_ip: str) -> BrokerError | None:
        """Return how a request of the user is refused; None if it is allowed."""
        decision = self.decision(resource, actions, source_ip)
        if decision is Decision.ALLOW:
            return None
        why = "no matched policies." if decision is None else "the decision is deny."
        return refused(f"User:{name} has no permission to access {resource} from {source_ip}, {why}")

    def updated(self, policies: Policies) -> Policies:
        """Return policies with the rules of others added, which replace those about the same resources."""
        return Policies(_updated(self.custom, policies.custom), _updated(self.default, policies.default))

    def without(self, policy_type: PolicyType, resource: Resource) -> Policies:
        """Return policies without the rules about a resource."""
        if policy_type is PolicyType.CUSTOM:
            return attrs.evolve(self, custom=_others(self.custom, resource))
        return attrs.evolve(self, default=_others(self.default, resource))


NO_POLICIES = Policies()


def _others(rules: Iterable[Rule], resource: Resource) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.resource != resource)


def _updated(rules: tuple[Rule, ...], changes: tuple[Rule, ...]) -> tuple[Rule, ...]:
    changed = {change.resource: change for change in changes}
    kept = tuple(changed.pop(rule.resource, rule) for rule in rules)
    return kept + tuple(change for change in changes if change.resource in changed)


def is_in_range(source_ip: str, allowed: str) -> bool:
    """Return True if an address equals another, or is in a range (10.0.0.0/8)."""
    if "/" not in allowed:
        return source_ip == allowed
    try:
        return ipaddress.ip_address(source_ip) in ipaddress.ip_network(allowed, strict=False)
    except ValueError:
        return False


def parse_policy_type(text: str | None) -> PolicyType:
    """Return the policy type; Custom for a missing or unknown one."""
    return _POLICY_TYPES.get((text or "").lower(), PolicyType.CUSTOM)


def parse_policies(info: AclInfo) -> Policies:
    """Return policies from a request's body, or the file's. Raises BrokerError."""
    made: dict[PolicyType, list[Rule]] = {PolicyType.CUSTOM: [], PolicyType.DEFAULT: []}
    for policy in info.policies or ():
        made[parse_policy_type(policy.policy_type)].extend(_rule(entry) for entry in policy.entries or ())
    if not any(made.values()):
        raise refused("The policies is empty.")
    return Policies(tuple(made[PolicyType.CUSTOM]), tuple(made[PolicyType.DEFAULT]))


def _rule(entry: PolicyEntryInfo) -> Rule:
    resource = parse_resource(entry.resource)
    actions = [_ACTIONS[name.lower()] for name in entry.actions or () if name.lower() in _ACTIONS]
    decision = _DECISIONS.get((entry.decision or "").lower())
    if resource is None:
        raise refused("The resource is null.")
    if not actions:
        raise refused("The actions is empty.")
    if Action.ANY in actions:
        raise refused("The actions can not be Any.")
    for source_ip in entry.source_ips or ():
        _check_source(source_ip)
    if decision is None:
        raise refused("The decision is null or illegal.")
    return Rule(resource, tuple(actions), tuple(entry.source_ips or ()), decision)


def _check_source(text: str) -> None:
    if not text.strip():
        raise refused("The source ip is empty.")
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise refused("The source ip is invalid.") from None


def policies_info(subject: str, policies: Policies, resource_filter: str = "") -> AclInfo:
    """Return the policies as answers and the file have them: only rules about resources with the filter's text in them."""
    kinds = ((PolicyType.CUSTOM, policies.custom), (PolicyType.DEFAULT, policies.default))
    shown = [(kind, [_info(rule) for rule in rules if resource_filter in str(rule.resource)]) for kind, rules in kinds]
    return AclInfo(subject, [PolicyInfo(kind.value, entries) for kind, entries in shown if entries])


def _info(rule: Rule) -> PolicyEntryInfo:
    return PolicyEntryInfo(
        resource=str(rule.resource),
        actions=[action.value for action in rule.actions],
        source_ips=list(rule.source_ips) or None,
        decision=rule.decision.value,
    )
