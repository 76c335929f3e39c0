"""Chooses between plain Python and the compiled forms of rocketmq-twisted-speed, which are used where they are installed.

A compiled form returns the same as the plain one, or None for what it does not take: then the plain form takes or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from twisted_mq.protocol.layouts.derive import LayoutError, Run

Columns = tuple[Sequence[int], Sequence[bytes], Sequence[bytes], bool]
"""Flags, bodies and properties of messages, and whether all bodies have one length and all properties, for all that is known."""
FORM: Final = 2
"""The functions' arguments and meaning. Functions of another number are left alone."""


class Forms(NamedTuple):
    """The compiled functions, None where plain Python does the work."""

    read_columns: Callable[[object, tuple[int, ...]], Columns | None] | None = None
    encode_records: Callable[..., tuple[bytes, list[int]] | None] | None = None
    walk_records: Callable[[object, int, int, int, bytes], tuple[bytearray, bytearray] | None] | None = None
    crc32s: Callable[..., bytearray | None] | None = None


PLAIN = Forms()


def installed() -> Forms:
    """Return the compiled functions. Raises ModuleNotFoundError if they are not installed."""
    from rocketmq_twisted_speed import batches, records

    return Forms(batches.read_columns, batches.encode_records, records.walk_records, records.crc32s)


def _choose() -> Forms:
    """Return the forms to use. Raises ImportError for an installed module that cannot be loaded."""
    try:
        import rocketmq_twisted_speed as speed
    except ModuleNotFoundError:
        return PLAIN
    return installed() if speed.FORM == FORM else PLAIN


forms = _choose()
"""The forms in use."""


def places(run: Run, **formats: str) -> tuple[int, ...]:
    """Return where these fields of a run are, then its size. Raises LayoutError for other formats than the compiled code has."""
    declared = {field.name: field.format for field in run.fields}
    found = {name: declared.get(name) for name in formats}
    if found != formats:
        raise LayoutError(f"compiled code has the formats {formats}, the declaration {found}: set MQ_COMPILED=off")
    offsets = {field.name: field.offset for field in run.fields}
    return *(offsets[name] for name in formats), run.size
