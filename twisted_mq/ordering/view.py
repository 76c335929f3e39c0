"""Follows the coordinator's nodes of ordered topics by watches: declarations, lists, living brokers, wishes.

It may be late, never wrong: code that acts on it reads again when it writes. Malformed documents are problems,
each with its path; their earlier content does not count any more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator, NoAnswer, Node, SessionLost
from twisted_mq.logs import Logger
from twisted_mq.ordering.documents import (
    BrokerMember,
    DocumentFault,
    GroupWish,
    Overtaken,
    decode_group,
    decode_lists,
    decode_member,
    decode_topic,
)
from twisted_mq.ordering.health import group_fault
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.paths import TOPICS, group_path, member_path, members_path, topic_path, unit_path

UnitKey = tuple[str, str]
"""Topic and unit."""

NOT_KNOWN = "its brokers are not known yet"


@attrs.define(eq=False)
class _Followed:
    """A node that is read again after each change, one read at a time; `told` takes what was read."""

    path: str
    read: Callable[[str], defer.Deferred[Any]]
    told: Callable[[Any], None]
    failed: Callable[[str, CoordinationError], None]
    complete: Callable[[int], None]
    end: Callable[[], None] = lambda: None
    is_told: bool = False
    """True if it was read once."""
    _reads: bool = False
    _again: bool = False
    _ended: bool = False

    def look(self) -> None:
        self._again = True
        if not self._reads:
            self._reads = True
            defer.Deferred.fromCoroutine(self._look()).addErrback(self._broken)

    async def _look(self) -> None:
        try:
            while self._again and not self._ended:
                self._again = False
                await self._look_once()
        finally:
            self._reads = False

    async def _look_once(self) -> None:
        try:
            found = await self.read(self.path)
        except (NoAnswer, SessionLost):
            return  # CONNECTED makes it read again
        except CoordinationError as problem:
            self.failed(self.path, problem)
            return
        if not self._ended:
            self.told(found)
            self.first_told()

    def first_told(self) -> None:
        if not self.is_told:
            self.is_told = True
            self.complete(-1)

    def _broken(self, reason: failure.Failure) -> None:
        OrderView.log.failure("{path} not followed", reason, path=self.path)

    def stop(self) -> None:
        self._ended = True
        self.end()
        self.first_told()


class OrderView:
    """The view. `unit_changed(topic, unit)` is called after a unit's lists changed, `others_changed` after any other change."""

    log = Logger()

    def __init__(
        self,
        coordinator: ICoordinator,
        unit_changed: Callable[[str, str], object],
        others_changed: Callable[[], object],
    ) -> None:
        self.topics: dict[str, OrderedTopic] = {}
        self.units: dict[UnitKey, Lists] = {}
        self.members: dict[str, dict[int, BrokerMember]] = {}
        self.sessions: dict[tuple[str, int], int] = {}
        """Group and broker id -> the session whose node the member is."""
        self.wishes: dict[str, GroupWish] = {}
        self.overtaken: dict[UnitKey, Lists] = {}
        """Lists that do not count, because a store holds something newer."""
        self.problems: dict[str, str] = {}
        """Path -> why its document does not count."""
        self._read_last: dict[UnitKey, tuple[int, int]] = {}
        """Version of a unit's node, and the epoch in it."""
        self._coordinator = coordinator
        self._unit_changed = unit_changed
        self._others_changed = others_changed
        self._followed: dict[str, _Followed] = {}
        self._unread = 0

    def start(self, *groups: str) -> None:
        """Follow everything from now on, and these groups whatever is declared; the coordinator need not be connected yet."""
        self._follow_groups(groups)
        self._follow(TOPICS, self._coordinator.children, self._topics_told)

    def stop(self) -> None:
        """Follow nothing."""
        for one in self._followed.values():
            one.stop()
        self._followed.clear()

    def forget(self) -> None:
        """End the session: what was read in it does not count any more, and is read again in the next."""
        self.units.clear()
        self.overtaken.clear()
        for followed in self._followed.values():
            followed.is_told = False
        self._unread = len(self._followed)

    def read_again(self) -> None:
        """Read everything again, because the server that was asked knew less before."""
        self.forget()
        for followed in tuple(self._followed.values()):
            followed.look()

    @property
    def is_complete(self) -> bool:
        """Return True if everything was read once in this session."""
        return not self._unread and bool(self._followed)

    def fault(self, group: str) -> str | None:
        """Return why a group must not take sends; None if it may."""
        members = self.members.get(group)
        return NOT_KNOWN if members is None else group_fault(members, self.wishes.get(group, GroupWish()))

    def problem_of(self, topic: str, unit: str) -> str | None:
        """Return why the lists of a unit are unknown; None if they are known."""
        for path in (TOPICS, topic_path(topic), unit_path(topic, unit)):
            if path in self.problems:
                return self.problems[path]
        if topic not in self.topics:
            return f"{topic_path(topic)} is missing: declare the topic with mq order create"
        missing = f"{unit_path(topic, unit)} is missing: declare the topic again with mq order create"
        return None if (topic, unit) in self.units else missing

    # following

    def _follow(self, path: str, read: Callable[[str], defer.Deferred[Any]], told: Callable[[Any], None]) -> None:
        key = f"{path}/" if read == self._coordinator.children else path
        if key not in self._followed:
            followed = self._followed[key] = _Followed(path, read, told, self._failed, self._count_unread)
            self._unread += 1
            followed.end = self._coordinator.watch(path, followed.look)

    def _count_unread(self, change: int) -> None:
        self._unread += change
        if not self._unread:
            self._others_changed()

    def _leave(self, key: str) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            followed.stop()
            self.problems.pop(followed.path, None)

    def _failed(self, path: str, problem: CoordinationError) -> None:
        self._note_problem(path, f"{path}: {problem}")
        self._others_changed()

    def _note_problem(self, path: str, text: str | None) -> None:
        if text is None:
            self.problems.pop(path, None)
        elif self.problems.get(path) != text:
            self.problems[path] = text
            self.log.error("ordered queues are blocked: {problem}", problem=text)

    def _decoded(self, path: str, node: Node, decode: Callable[[str, bytes], Any]) -> Any:
        """Return the document; None, and a problem is recorded, if it is malformed."""
        try:
            document = decode(path, node.data)
        except DocumentFault as fault:
            if isinstance(fault, Overtaken):
                _, _, topic, unit = path.split("/")
                self.overtaken[topic, unit] = fault.lists
                self._note_problem(path, f"{fault}; {fault.remedy}")
            else:
                self._note_problem(path, str(fault))
            return None
        self._note_problem(path, None)
        return document

    # nodes that were read

    def _topics_told(self, names: tuple[str, ...]) -> None:
        self._note_problem(TOPICS, None)
        for topic in names:
            self._follow(topic_path(topic), self._coordinator.read, functools.partial(self._topic_told, topic))
        for topic in [topic for topic in self._known_topics() if topic not in names]:
            self._leave(topic_path(topic))
            self._forget_topic(topic)
            self._read_last = {key: last for key, last in self._read_last.items() if key[0] != topic}
        self._others_changed()

    def _known_topics(self) -> list[str]:
        """Return the topics whose declarations are followed; the list of topics itself is followed as `/topics/`."""
        prefix = f"{TOPICS}/"
        names = [path[len(prefix) :] for path in self._followed if path.startswith(prefix)]
        return [name for name in names if name and "/" not in name]

    def _topic_told(self, topic: str, node: Node | None) -> None:
        path = topic_path(topic)
        declared = self._decoded(path, node, decode_topic) if node is not None else None
        if declared is None:
            self._forget_topic(topic)
        elif declared != self.topics.get(topic):
            self._forget_topic(topic, but=declared.units)
            self.topics[topic] = declared
            self._follow_groups(declared.groups)
            for unit in declared.units:
                self._follow(
                    unit_path(topic, unit), self._coordinator.read, functools.partial(self._unit_told, topic, unit)
                )
        self._others_changed()

    def _forget_topic(self, topic: str, but: Collection[str] = ()) -> None:
        self.topics.pop(topic, None)
        for known in (self.units, self.overtaken):
            for key in [key for key in known if key[0] == topic and key[1] not in but]:
                del known[key]
        prefix = f"{topic_path(topic)}/"
        for path in [one for one in self._followed if one.startswith(prefix) and one[len(prefix) :] not in but]:
            self._leave(path)

    def _unit_told(self, topic: str, unit: str, node: Node | None) -> None:
        path, key = unit_path(topic, unit), (topic, unit)
        overtaken = self.overtaken.pop(key, None)
        lists = None if node is None else self._not_taken_back(key, path, node)
        if lists == self.units.get(key) and overtaken == self.overtaken.get(key):
            return
        if lists is None:
            self.units.pop(key, None)
        else:
            self.units[key] = lists
            self._follow_groups([*lists.send, *(term.group for term in lists.consume)])
        self._unit_changed(topic, unit)

    def _not_taken_back(self, key: UnitKey, path: str, node: Node) -> Lists | None:
        """Return the lists; None if their epoch was set back by hand, because fenced sends would then count again."""
        lists: Lists | None = self._decoded(path, node, decode_lists)
        if lists is None:
            return None
        version, epoch = self._read_last.get(key, (0, 0))
        if lists.epoch < epoch and node.version > version:
            self._note_problem(path, f"{path}: epoch: must not be lower than {epoch}, got {lists.epoch}")
            return None
        self._read_last[key] = node.version, lists.epoch
        return lists

    def _follow_groups(self, groups: Collection[str]) -> None:
        for group in groups:
            self._follow(members_path(group), self._coordinator.children, functools.partial(self._members_told, group))
            self._follow(group_path(group), self._coordinator.read, functools.partial(self._wish_told, group))

    def _members_told(self, group: str, names: tuple[str, ...]) -> None:
        ids = {int(name) for name in names if name.isascii() and name.isdigit()}
        self.members.setdefault(group, {})
        below = f"{members_path(group)}/"
        followed = {path for path in self._followed if path.startswith(below)} - {below}
        for path in followed - {member_path(group, broker_id) for broker_id in ids}:
            self._member_told(group, int(path.removeprefix(below)), None)
            self._leave(path)
        for broker_id in ids:
            self._follow(
                member_path(group, broker_id),
                self._coordinator.read,
                functools.partial(self._member_told, group, broker_id),
            )
        self._others_changed()

    def _member_told(self, group: str, broker_id: int, node: Node | None) -> None:
        path = member_path(group, broker_id)
        member = self._decoded(path, node, decode_member) if node is not None else None
        members = self.members[group]
        if node is None or member is None:
            members.pop(broker_id, None)
            self.sessions.pop((group, broker_id), None)
        else:
            members[broker_id] = member
            self.sessions[group, broker_id] = node.session
        self._others_changed()

    def _wish_told(self, group: str, node: Node | None) -> None:
        wish = GroupWish() if node is None else self._decoded(group_path(group), node, decode_group)
        self.wishes[group] = GroupWish(retired=True) if wish is None else wish
        self._others_changed()
