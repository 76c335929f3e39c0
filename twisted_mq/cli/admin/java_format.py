"""Formats values as Java prints them in the admin tool's output: HashMap order, numbers, fastjson's pretty form."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal

from twisted_mq.protocol.text.java import java_hash


def hash_order(names: Iterable[str]) -> list[str]:
    """Return strings in the order of a java.util.HashMap or HashSet that grew with them."""
    held = list(dict.fromkeys(names))
    buckets = 16
    while len(held) > buckets * 3 // 4:
        buckets *= 2
    return sorted(held, key=lambda name: _spread(java_hash(name)) & (buckets - 1))


def _spread(value: int) -> int:
    """Return HashMap.hash: the upper half folded into the lower."""
    value &= 0xFFFFFFFF
    return value ^ (value >> 16)


def fixed(value: float, digits: int) -> str:
    """Return a number as %.<digits>f of java.util.Formatter: halves are rounded up, on the decimal digits that are shown."""
    return str(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def text_or_null(value: object) -> str:
    """Return the text that %s prints."""
    if value is None:
        return "null"
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def parse_number(text: str | None, default: float = 0.0) -> float:
    """Return Double.parseDouble of a broker's value, or the default without one."""
    try:
        return float(text) if text else default
    except ValueError:
        return default


def map_text(values: Mapping[str, object] | Mapping[int, object]) -> str:
    """Return a HashMap's toString: {k=v, k2=v2}."""
    numbers = map(str, sorted(key for key in values if isinstance(key, int)))
    texts = {str(key): text_or_null(value) for key, value in values.items()}
    keys = [*numbers, *hash_order(key for key in values if isinstance(key, str))]
    return "{" + ", ".join(f"{key}={texts[key]}" for key in keys) + "}"


def _moment(timestamp_ms: int, zone: datetime.tzinfo | None) -> datetime.datetime:
    moment = datetime.datetime.fromtimestamp(timestamp_ms // 1000, zone or datetime.UTC)
    return moment.astimezone() if zone is None else moment


def time_text(timestamp_ms: int, zone: datetime.tzinfo | None = None) -> str:
    """Return 2026-11-20 23:27:22,099 in the given zone, by default the machine's (UtilAll.timeMillisToHumanString2)."""
    return f"{_moment(timestamp_ms, zone):%Y-%m-%d %H:%M:%S},{timestamp_ms % 1000:03d}"


def date_text(timestamp_ms: int, zone: datetime.tzinfo | None = None) -> str:
    """Return 2026-11-20 23:27:22 (UtilAll.YYYY_MM_DD_HH_MM_SS)."""
    return f"{_moment(timestamp_ms, zone):%Y-%m-%d %H:%M:%S}"


def parse_time(text: str, now_ms: int) -> int:
    """Parse a number, "now", or 2026-11-20#23:27:22:099 in the machine's zone as ms since 1970. Raises ValueError."""
    if text == "now":
        return now_ms
    try:
        return int(text)
    except ValueError:
        moment, _, ms = text.rpartition(":")
        return round(datetime.datetime.strptime(moment, "%Y-%m-%d#%H:%M:%S").astimezone().timestamp()) * 1000 + int(ms)


def pretty_json(value: object, depth: int = 0) -> str:
    """Return fastjson's PrettyFormat with its quirk: keys that are numbers are neither quoted nor put on a new line."""
    if isinstance(value, Mapping):
        return _pretty_object(value, depth)
    if isinstance(value, list | tuple):
        return _pretty_list(list(value), depth)
    return json.dumps(value, ensure_ascii=False)


def _pretty_list(items: list[object], depth: int) -> str:
    if not items:
        return "[]"
    inner = "\n" + "\t" * (depth + 1)
    return "[" + ",".join(inner + pretty_json(item, depth + 1) for item in items) + "\n" + "\t" * depth + "]"


def _pretty_object(values: Mapping[object, object], depth: int) -> str:
    if not values:
        return "{}"
    inner = "\n" + "\t" * (depth + 1)
    members = [
        (f"{inner}{json.dumps(key, ensure_ascii=False)}" if isinstance(key, str) else str(key))
        + ":"
        + pretty_json(member, depth + 1)
        for key, member in values.items()
    ]
    return "{" + ",".join(members) + "\n" + "\t" * depth + "}"
