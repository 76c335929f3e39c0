"""Checks a broker's own statistics and settings, for any broker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from twisted_mq.cli.doctor.checks import CheckOutcome, Result, graded
from twisted_mq.config.startup import ALL_ADDRESSES

_UPTIME = re.compile(r"\[ (\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1000)
CLOCK_MS, CLOCK_FAR_MS = 5_000, 60_000
"""Differences of clocks that give a warning, and that are a problem; the broker's times are in whole seconds."""
DISK_SHORT, DISK_FULL = 0.75, 0.90
"""The defaults of diskMaxUsedSpaceRatio and diskSpaceWarningLevelRatio, if a broker does not report them."""


def clock(where: str, figures: Mapping[str, str], now_ms: int) -> CheckOutcome:
    """Check the clock: a broker reports when it started and how long it runs, together the time of its clock."""
    uptime = _UPTIME.match(figures.get("runtime", ""))
    boot = figures.get("bootTimestamp", "")
    if uptime is None or not boot.isdecimal():
        return CheckOutcome("clock", where, Result.UNKNOWN, "it does not report its uptime")
    shown = int(boot) + sum(int(part) * unit for part, unit in zip(uptime.groups(), _UNITS_MS, strict=True))
    apart = shown - now_ms
    remedy = "synchronize both clocks with NTP: delays, retention and queries by time depend on them"
    return graded(
        "clock",
        where,
        f"{round(apart / 1000):+d} s from here",
        (abs(apart) >= CLOCK_FAR_MS, Result.PROBLEM, remedy),
        (abs(apart) >= CLOCK_MS, Result.WARNING, remedy),
    )


def disk(where: str, figures: Mapping[str, str], settings: Mapping[str, str]) -> CheckOutcome:
    """Check how full the disk of the log is, against the broker's own limits."""
    try:
        used = float(figures["commitLogDiskRatio"])
    except (KeyError, ValueError):
        return CheckOutcome("disk", where, Result.UNKNOWN, "it does not report its disk usage")
    short = _percent(settings, "diskMaxUsedSpaceRatio", DISK_SHORT)
    full = _percent(settings, "diskSpaceWarningLevelRatio", DISK_FULL)
    remedy = "free space: `mq store sizes DIR` shows the largest topics; or lower fileReservedTime"
    return graded(
        "disk",
        where,
        f"{used:.0%} used",
        (used >= full, Result.PROBLEM, f"sends are refused; {remedy}"),
        (used >= short, Result.WARNING, f"old files are deleted at any hour; {remedy}"),
    )


def _percent(settings: Mapping[str, str], key: str, default: float) -> float:
    text = settings.get(key, "")
    return int(text) / 100 if text.isdecimal() else default


def safety(where: str, settings: Mapping[str, str]) -> Iterator[CheckOutcome]:
    """Check whether strangers have free access."""
    address = settings.get("bindAddress")
    if address is None:
        yield CheckOutcome("safety", where, Result.UNKNOWN, "it does not report its listen address")
        return
    asks = any(settings.get(key, "").lower() == "true" for key in ("authenticationEnabled", "aclEnable"))
    accounts = "accounts" if asks else "no accounts"
    yield graded(
        "safety",
        where,
        f"listens on {address}, {accounts}",
        (
            address in ALL_ADDRESSES and not asks,
            Result.WARNING,
            "every client that can connect may read, write and change everything: set bindAddress, a firewall, or "
            "authenticationEnabled and authorizationEnabled",
        ),
    )
    if asks and address in ALL_ADDRESSES:
        mode = settings.get("tls.server.mode", "disabled")
        yield graded(
            "encryption",
            where,
            f"tls.server.mode={mode}",
            (mode == "disabled", Result.WARNING, "an attacker on the network can repeat a signed request: enable TLS"),
        )


def replication(where: str, settings: Mapping[str, str], slaves: int) -> Iterator[CheckOutcome]:
    """Check that a master that waits for slaves has any."""
    if settings.get("brokerRole") != "SYNC_MASTER":
        return
    copies = settings.get("inSyncReplicas", "1")
    needed = int(copies) - 1 if copies.isdecimal() else 0
    yield graded(
        "replication",
        where,
        f"SYNC_MASTER, inSyncReplicas={copies}, {slaves} slaves",
        (slaves < needed, Result.PROBLEM, "sends get SLAVE_NOT_AVAILABLE: start its slaves"),
        (slaves == 0, Result.WARNING, "its messages have no copy: start a slave, and set inSyncReplicas=2"),
    )
