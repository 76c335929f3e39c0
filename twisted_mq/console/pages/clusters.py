"""Shows clusters and their brokers: rates, disk, replication, settings."""

from __future__ import annotations

import functools
import re

import attrs

from twisted_mq.admin.broker_changes import add_write_permission, change_settings, wipe_write_permission
from twisted_mq.admin.calls import AdminCalls, brokers
from twisted_mq.admin.figures import BrokerFigures, all_figures, figures_of, replication, settings_of
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.options import option_fields
from twisted_mq.config.reasons import REASONS
from twisted_mq.console.answers import Answer, BadInput, JsonValue, NotThere, Page, Redirect
from twisted_mq.console.forms import link
from twisted_mq.console.history import History, Values, only_of
from twisted_mq.console.visit import Visit
from twisted_mq.protocol.bodies import HARuntimeInfo
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.flags import PERM_WRITE
from twisted_mq.protocol.text.json_value import Json
from twisted_mq.remoting.errors import RemotingError

AT_ONCE = "at once"
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9._]{0,99}")
NEARLY_FULL = 0.85
"""From this share on, a broker's disk is shown as a warning; brokers refuse sends at 0.9 (diskSpaceWarningLevelRatio)."""


@attrs.frozen
class Cluster:
    """A cluster with its brokers and their totals."""

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
    """Show a broker with everything that it reports."""
    known = await known_broker(visit.admin, visit.needed("address", "The broker's address"))
    shown = await figures_of(visit.admin, known)
    settings = await _settings(visit.admin, shown)
    values = {
        "broker": shown,
        "now_ms": visit.now_ms(),
        "nearly_full": NEARLY_FULL,
        "replication": await _replication(visit.admin, shown),
        "settings": settings,
        "counts": {key: when_it_counts(key) for key in settings},
        "writable": await _is_writable(visit.admin, shown),
    }
    return Page("broker.html", values)


@functools.cache
def changeable_keys() -> frozenset[str]:
    """Return the keys that this project's brokers change while they run."""
    return frozenset(key for key, field in option_fields(BrokerOptions).items() if field.metadata["remote"])


def when_it_counts(key: str) -> str | None:
    """Return when a change of a setting takes effect at this project's brokers; None for a setting without effect there."""
    if key in REASONS:
        return None
    return AT_ONCE if key in changeable_keys() else "after a restart"


async def _is_writable(admin: AdminCalls, shown: BrokerFigures) -> bool | None:
    """Return True if name servers let clients send to a broker, judged by its own topic; None if it has no such topic."""
    try:
        route = await admin.topic_route(shown.name)
    except (ProtocolError, RemotingError):
        return None
    perms = [one.perm for one in route.queue_datas or () if one.broker_name == shown.name]
    return bool(perms[0] & PERM_WRITE) if perms else None


async def change_setting(visit: Visit) -> Answer:
    """Change one setting of one broker."""
    known = await known_broker(visit.admin, visit.needed("address", "The broker's address"))
    key, value = visit.needed("key", "The key"), visit.text("value")
    if not _KEY.fullmatch(key):
        raise BadInput(f"{key!r} is not a key of a setting.")
    await change_settings(visit.admin, known.address, {key: value})
    visit.tell(f"{key} of {known.name} at {known.address} is now {value}.")
    return Redirect(link("/broker", address=known.address))


async def change_writing(visit: Visit) -> Answer:
    """Allow or forbid sends to a broker, at all name servers."""
    known = await known_broker(visit.admin, visit.needed("address", "The broker's address"))
    is_on = visit.text("write") == "on"
    change = add_write_permission if is_on else wipe_write_permission
    counts = [await change(visit.admin, name_server, known.name) for name_server in visit.admin.name_servers]
    what = "clients send to it again" if is_on else "clients stop sending to it when they have updated their routes"
    visit.tell(f"{known.name}: {what}; {max(counts)} topics at {len(counts)} name servers.", good=max(counts) > 0)
    return Redirect(link("/broker", address=known.address))


async def known_broker(admin: AdminCalls, address: str) -> BrokerFigures:
    """Return the broker that announced an address: the console connects to no others. Raises NotThere."""
    cluster = await admin.cluster_info()
    for one in brokers(cluster, sorted(cluster.cluster_addr_table or {})):
        if one[3] == address:
            return BrokerFigures(*one)
    raise NotThere(f"No broker is registered at {address}. The overview shows the running brokers.")


async def _replication(admin: AdminCalls, shown: BrokerFigures) -> HARuntimeInfo | None:
    """Return a broker's replication state; None if it does not report one."""
    if shown.figures is None:
        return None
    try:
        return await replication(admin, shown.address)
    except (ProtocolError, RemotingError):
        return None


async def _settings(admin: AdminCalls, shown: BrokerFigures) -> dict[str, str]:
    """Return a broker's settings; empty if it does not show them to this user."""
    if shown.figures is None:
        return {}
    try:
        return dict(sorted((await settings_of(admin, shown.address)).items()))
    except (ProtocolError, RemotingError):
        return {}


async def charts(visit: Visit) -> Answer:
    """Show the page whose script requests `figures`."""
    return Page("charts.html")


async def figures(visit: Visit) -> Answer:
    """Return the current rates of each broker."""
    found = await all_figures(visit.admin)
    return JsonValue({"timeMs": visit.now_ms(), "brokers": [_figures_json(Values.of(one)) for one in found]})


async def history(visit: Visit) -> Answer:
    """Return the rates of each broker in the past hours, as the console has kept them, or Prometheus.

    They are read by another account, or by none. So an account of the cluster gets those of brokers that answer it now.
    """
    hours = visit.number("hours", "Hours", 24, 1, 24)
    now_ms = visit.now_ms()
    since_ms, kept = now_ms - hours * 3_600_000, visit.history
    if isinstance(kept, History):
        samples = kept.since(since_ms)
        if visit.settings.accounts:
            samples = only_of(samples, await _readable(visit))
    else:
        samples = await kept.since(since_ms, now_ms, await _readable(visit))
    return JsonValue(
        {
            "samples": [
                {"timeMs": one.time_ms, "brokers": [_figures_json(two) for two in one.brokers]} for one in samples
            ]
        }
    )


async def _readable(visit: Visit) -> list[BrokerFigures]:
    """Return the brokers, for an account of the cluster those whose figures it may read."""
    found = await all_figures(visit.admin)
    return [one for one in found if one.figures or not visit.settings.accounts]


def _figures_json(one: Values) -> Json:
    return {
        "cluster": one.cluster,
        "name": one.name,
        "id": one.broker_id,
        "inRate": one.in_rate,
        "outRate": one.out_rate,
        "disk": one.disk_ratio,
    }
