"""Names of RocketMQ's versions, which travel as numbers (Apache: MQVersion).

From 3.0.0 on each version has two numbers, its snapshot's and its own: 478 is V5_3_3_SNAPSHOT, 479 is V5_3_3.
"""

from __future__ import annotations

HIGHER_VERSION = "HIGHER_VERSION"
"""The meaning of a number past the last one."""

_FIRST = (
    "V3_0_0_SNAPSHOT",
    "V3_0_0_ALPHA1",
    *(f"V3_0_0_BETA{number}" for number in range(1, 6)),
    *(f"V3_0_0_BETA{number}{snapshot}" for number in range(6, 10) for snapshot in ("_SNAPSHOT", "")),
    "V3_0_0_FINAL",
)


def _patches(major: int, minor: int) -> range:
    """Return the last numbers of a version's releases, as Apache planned them."""
    if (major, minor) == (3, 0):
        return range(1, 16)
    return range(1 if major == 3 and minor > 2 else 0, 10)


_NAMES = (
    *_FIRST,
    *(
        f"V{major}_{minor}_{patch}{snapshot}"
        for major in (3, 4, 5)
        for minor in range(10)
        for patch in _patches(major, minor)
        for snapshot in ("_SNAPSHOT", "")
    ),
    HIGHER_VERSION,
)


def version_name(number: int) -> str:
    """Return the name of a version's number; negative ones, which no client sends, have the first name."""
    return _NAMES[max(0, min(number, len(_NAMES) - 1))]
