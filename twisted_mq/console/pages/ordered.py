"""Shows ordered topics: the broker groups that take and hand out each queue, their order, the leaders, and standstills."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted_mq.admin.errors import AdminError
from twisted_mq.admin.ordered_states import TopicState
from twisted_mq.admin.ordered_topics import OrderSession, declared_topics, read_state
from twisted_mq.console.answers import Answer, NotThere, Page
from twisted_mq.console.visit import Visit
from twisted_mq.coordination.connect import coordinator_for
from twisted_mq.coordination.interfaces import CoordinationError
from twisted_mq.extras import MissingExtra

R = TypeVar("R")


async def ordered(visit: Visit) -> Answer:
    """Show all ordered topics, and the lists of one of them."""
    chosen = visit.text("topic")

    async def look(session: OrderSession) -> tuple[list[str], TopicState | None]:
        topics = await declared_topics(session)
        if chosen and chosen not in topics:
            raise NotThere(f"No ordered topic {chosen} is declared.")
        name = chosen or next(iter(topics), None)
        return topics, None if name is None else await read_state(session, name)

    topics, state = await in_session(visit, look)
    return Page("ordered.html", {"topics": topics, "state": state})


async def in_session(visit: Visit, work: Callable[[OrderSession], Coroutine[Any, Any, R]]) -> R:
    """Run the work in a session of its own. Raises AdminError if the coordinator does not answer."""
    settings = visit.settings.coordinator
    if visit.session.cluster != visit.settings.name:
        raise NotThere(f"The coordinator has the lists of the cluster {visit.settings.name}, and that is not shown.")
    if settings is None or visit.admin.reactor is None:
        raise NotThere("This console was started without --coordinator, so it does not show ordered topics.")
    try:
        coordinator = coordinator_for(settings, visit.admin.reactor)
        await coordinator.start()
        try:
            return await work(OrderSession(visit.admin, coordinator))
        finally:
            await coordinator.stop()
    except (CoordinationError, MissingExtra) as error:
        raise AdminError(f"The coordinator {settings.address}: {error}") from error
