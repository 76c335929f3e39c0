"""Options of the source. Unknown names are refused: a misspelt option would silently read too much."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.source.schema import COLUMN_NAMES, columns_named

DEFAULT_SPLIT_BYTES = 64 * 1024 * 1024
"""A 1 GiB file (Apache's default) gives 16 tasks."""
SMALLEST_SPLIT_BYTES = 4096

_SIZE = re.compile(r"([0-9]{1,15})([kmg]?)\Z", re.ASCII)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TRUTH = {"true": True, "false": False}
_WHOLE_LOG = 1 << 63


@attrs.frozen
class ReadOptions:
    """What to read and how.

    | option | meaning | default |
    |---|---|---|
    | path | store directory (storePathRootDir), or its commitlog directory | needed |
    | topic | topics to keep, with commas between | all |
    | columns | columns to make, with commas between, in this order | all |
    | startOffset | physical offset in bytes: records that begin before it are left out | 0 |
    | endOffset | physical offset: records that begin at it or behind are left out | end of log |
    | split | how many bytes a task reads, about; 64m, 512k or plain bytes | 64m |
    | failOnDamage | true: damaged bytes fail the query; false: intact records are read, damage is logged | false |
    """

    path: str
    topics: tuple[str, ...] = ()
    columns: tuple[str, ...] = COLUMN_NAMES
    start_offset: int = 0
    end_offset: int = _WHOLE_LOG
    split_bytes: int = DEFAULT_SPLIT_BYTES
    fail_on_damage: bool = False


def _names(name: str, value: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in value.split(",") if part.strip())
    if not names:
        raise WrongOption(name, value, "names are needed, with commas between")
    return names


def _columns(name: str, value: str) -> tuple[str, ...]:
    return tuple(column.name for column in columns_named(_names(name, value)))


def _bytes(name: str, value: str) -> int:
    match = _SIZE.match(value.strip().lower())
    if match is None:
        raise WrongOption(name, value, "a number of bytes is needed, such as 67108864 or 64m")
    return int(match[1]) * _UNITS[match[2]]


def _split(name: str, value: str) -> int:
    size = _bytes(name, value)
    if size < SMALLEST_SPLIT_BYTES:
        raise WrongOption(name, value, f"at least {SMALLEST_SPLIT_BYTES} bytes are needed")
    return size


def _truth(name: str, value: str) -> bool:
    if value.strip().lower() not in _TRUTH:
        raise WrongOption(name, value, "true or false is needed")
    return _TRUTH[value.strip().lower()]


def _path(name: str, value: str) -> str:
    return value.removeprefix("file://")


_OPTIONS = {
    "path": ("path", _path),
    "topic": ("topics", _names),
    "columns": ("columns", _columns),
    "startOffset": ("start_offset", _bytes),
    "endOffset": ("end_offset", _bytes),
    "split": ("split_bytes", _split),
    "failOnDamage": ("fail_on_damage", _truth),
}
_BY_LOWER_NAME = {name.lower(): name for name in _OPTIONS}
OPTION_NAMES = tuple(_OPTIONS)


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """The options that Spark hands over; their names are not case-sensitive. Raises WrongOption."""
    values: dict[str, object] = {}
    for key, value in given.items():
        name = _BY_LOWER_NAME.get(key.lower())
        if name is None:
            raise WrongOption(key, value, "no such option; there are " + ", ".join(OPTION_NAMES))
        field, parse = _OPTIONS[name]
        values[field] = parse(name, value)
    if not values.get("path"):
        raise WrongOption("path", "", "the store directory is needed: load(path)")
    return ReadOptions(**values)  # type: ignore[arg-type]
