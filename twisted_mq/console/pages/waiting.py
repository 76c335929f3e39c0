"""Shows messages that wait in brokers: delayed ones by level, timed ones by topic, half messages of transactions."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.figures import BrokerFigures, all_figures, settings_of
from twisted_mq.admin.waiting import (
    HALVES_SHOWN,
    DelayLevel,
    Half,
    OpenHalves,
    delay_levels,
    delayed_messages,
    open_halves,
    timed,
)
from twisted_mq.console.answers import Answer, Page
from twisted_mq.console.pages.clusters import known_broker
from twisted_mq.console.visit import Visit
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.remoting.errors import RemotingError


@attrs.frozen
class WaitingAt:
    """The waiting messages of one master. Values that it cannot report are None."""

    broker: BrokerFigures
    levels: list[tuple[DelayLevel, str]] | None
    timed: Mapping[str, int] | None
    halves: OpenHalves | None


async def waiting(visit: Visit) -> Answer:
    """Show all masters."""
    masters = [one for one in await all_figures(visit.admin) if one.is_master]
    rows = await concurrently(lambda one: _at(visit.admin, one), masters)
    halves: list[tuple[BrokerFigures, Half]] = [
        (row.broker, half) for row in rows if row.halves is not None for half in row.halves.shown
    ]
    return Page("waiting.html", {"rows": rows, "halves": halves, "most": HALVES_SHOWN, "now_ms": visit.now_ms()})


async def _at(admin: AdminCalls, broker: BrokerFigures) -> WaitingAt:
    if broker.figures is None:
        return WaitingAt(broker, None, None, None)
    return WaitingAt(
        broker, await _levels(admin, broker, broker.figures), await _timed(admin, broker), await _halves(admin, broker)
    )


async def _levels(
    admin: AdminCalls, broker: BrokerFigures, figures: Mapping[str, str]
) -> list[tuple[DelayLevel, str]] | None:
    """Return the levels in which messages wait, with their names."""
    try:
        levels = await delay_levels(admin, broker.address, figures)
    except (ProtocolError, RemotingError):
        return None
    names = await _level_names(admin, broker.address)
    return [(one, names.get(one.level, f"level {one.level}")) for one in levels if one.waiting]


async def _level_names(admin: AdminCalls, address: str) -> dict[int, str]:
    """Return level -> its delay as the broker's settings name it; empty if it does not show them."""
    try:
        text = (await settings_of(admin, address)).get("messageDelayLevel", "")
    except (ProtocolError, RemotingError):
        return {}
    return dict(enumerate(text.split(), 1))


async def _timed(admin: AdminCalls, broker: BrokerFigures) -> Mapping[str, int] | None:
    try:
        return await timed(admin, broker.address)
    except (ProtocolError, RemotingError):
        return None


async def _halves(admin: AdminCalls, broker: BrokerFigures) -> OpenHalves | None:
    try:
        return await open_halves(admin, broker.name, broker.address)
    except (ProtocolError, RemotingError):
        return None


async def delayed(visit: Visit) -> Answer:
    """Show the next messages of a delay level at a broker."""
    broker = await known_broker(visit.admin, visit.needed("address", "The broker's address"))
    number = visit.number("level", "The delay level", 1, 1, 64)
    figures = await visit.admin.broker_runtime(broker.address)
    levels = {one.level: one for one in await delay_levels(visit.admin, broker.address, figures)}
    level = levels.get(number, DelayLevel(number, 0, 0))
    names = await _level_names(visit.admin, broker.address)
    values = {
        "broker": broker,
        "level": level,
        "level_name": names.get(number, f"level {number}"),
        "messages": await delayed_messages(visit.admin, broker.name, broker.address, level),
    }
    return Page("delayed.html", values)
