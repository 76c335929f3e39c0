"""Clusters and their brokers: rates, disk, replication, settings."""

from __future__ import annotations

import attrs

from twisted_mq.admin.calls import AdminCalls, brokers
from twisted_mq.admin.figures import BrokerFigures, all_figures, figures_of, replication, settings_of
from twisted_mq.console.answers import Answer, JsonValue, NotThere, Page
from twisted_mq.console.visit import Visit
from twisted_mq.protocol.bodies import HARuntimeInfo
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.text.json_value import Json
from twisted_mq.remoting.errors import RemotingError

NEARLY_FULL = 0.85
"""From here on a broker's disk is shown as a warning; brokers refuse sends at 0.9 (diskSpaceWarningLevelRatio)."""


@attrs.frozen
class Cluster:
    """A cluster with its brokers, and what they do together."""

    name: str
    brokers: list[BrokerFigures]

    @property
    def in_rate(self) -> float:
        return sum(one.in_rate or 0.0 for one in self.brokers if one.is_master)

    @property
    def out_rate(self) -> float:
        return sum(one.out_rate or 0.0 for one in self.brokers)


async def overview(visit: Visit) -> Answer:
    found = await all_figures(visit.admin)
    clusters = [Cluster(name, [one for one in found if one.cluster == name])
                for name in sorted({one.cluster for one in found})]  # fmt: skip
    return Page("clusters.html", {"clusters": clusters, "now_ms": visit.now_ms(), "nearly_full": NEARLY_FULL})


async def broker(visit: Visit) -> Answer:
    """One broker: all that it says of itself."""
    known = await known_broker(visit.admin, visit.needed("address", "The broker's address"))
    shown = await figures_of(visit.admin, known)
    values = {
        "broker": shown,
        "now_ms": visit.now_ms(),
        "nearly_full": NEARLY_FULL,
        "replication": await _replication(visit.admin, shown),
        "settings": await _settings(visit.admin, shown),
    }
    return Page("broker.html", values)


async def known_broker(admin: AdminCalls, address: str) -> BrokerFigures:
    """The broker that announced an address: the console connects to no others. Raises NotThere."""
    cluster = await admin.cluster_info()
    for one in brokers(cluster, sorted(cluster.cluster_addr_table or {})):
        if one[3] == address:
            return BrokerFigures(*one)
    raise NotThere(f"No broker announced {address}. The overview has those that are up.")


async def _replication(admin: AdminCalls, shown: BrokerFigures) -> HARuntimeInfo | None:
    """None where the broker says nothing of it."""
    if shown.figures is None:
        return None
    try:
        return await replication(admin, shown.address)
    except (ProtocolError, RemotingError):
        return None


async def _settings(admin: AdminCalls, shown: BrokerFigures) -> dict[str, str]:
    """Empty where the broker does not show them to this user."""
    if shown.figures is None:
        return {}
    try:
        return dict(sorted((await settings_of(admin, shown.address)).items()))
    except (ProtocolError, RemotingError):
        return {}


async def charts(visit: Visit) -> Answer:
    """The page whose script asks for `figures`."""
    return Page("charts.html")


async def figures(visit: Visit) -> Answer:
    """The rates of each broker now."""
    found = await all_figures(visit.admin)
    return JsonValue({"timeMs": visit.now_ms(), "brokers": [_figures_json(one) for one in found]})


def _figures_json(one: BrokerFigures) -> Json:
    return {
        "cluster": one.cluster,
        "name": one.name,
        "id": one.broker_id,
        "inRate": one.in_rate,
        "outRate": one.out_rate,
        "disk": one.disk_ratio,
    }
