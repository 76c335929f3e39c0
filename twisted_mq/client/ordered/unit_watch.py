"""The lists of one unit, as of the last read from the coordinator."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.client.ordered.errors import CoordinatorUnreachable, OrderedError, OrderedTopicUnknown, QueueBlocked
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator, NoAnswer, SessionLost
from twisted_mq.logs import Logger
from twisted_mq.ordering.documents import DocumentFault, decode_lists
from twisted_mq.ordering.lists import Lists
from twisted_mq.ordering.paths import unit_path


class UnitWatch:
    """Reads a unit's node when it changes, and calls `changed` if its content differs from before.

    `lists` are None before the first read, and while there is a `problem`.
    """

    log = Logger()

    def __init__(self, coordinator: ICoordinator, topic: str, unit: str, changed: Callable[[], object]) -> None:
        self.lists: Lists | None = None
        self.problem: OrderedError | None = None
        self._coordinator = coordinator
        self._topic = topic
        self._unit = unit
        self._changed = changed
        self._end: Callable[[], None] | None = None
        self._looks = self._again = False

    def start(self) -> None:
        """Read now, and after each change."""
        self._end = self._coordinator.watch(unit_path(self._topic, self._unit), self._look)

    def stop(self) -> None:
        """Call nothing back any more."""
        if self._end is not None:
            self._end()
            self._end = None

    def _look(self) -> None:
        self._again = True
        if not self._looks:
            self._looks = True
            defer.Deferred.fromCoroutine(self._look_until_settled()).addErrback(self._failed)

    async def _look_until_settled(self) -> None:
        try:
            while self._again and self._end is not None:
                self._again = False
                lists, problem = await self._read()
                if self._end is not None and (lists, str(problem)) != (self.lists, str(self.problem)):
                    self.lists, self.problem = lists, problem
                    self._changed()
        except (NoAnswer, SessionLost):
            pass  # CONNECTED makes it look again
        finally:
            self._looks = False

    async def _read(self) -> tuple[Lists | None, OrderedError | None]:
        path = unit_path(self._topic, self._unit)
        try:
            node = await self._coordinator.read(path)
            if node is None:
                return None, OrderedTopicUnknown(self._topic)
            return decode_lists(path, node.data), None
        except (NoAnswer, SessionLost):
            raise
        except CoordinationError as error:
            return None, CoordinatorUnreachable(f"topic {self._topic} queue {self._unit}", error)
        except DocumentFault as fault:
            return None, QueueBlocked(self._topic, self._unit, fault)

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("lists not read: topic={topic} unit={unit}", reason, topic=self._topic, unit=self._unit)
