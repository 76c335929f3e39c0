"""The choice of an offset search among messages with the same store time."""

from __future__ import annotations

import enum


class BoundaryType(enum.Enum):
    """Selects the offset that a search by time returns if several or no messages match; written as LOWER or UPPER."""

    LOWER = "LOWER"
    UPPER = "UPPER"

    @classmethod
    def of(cls, name: str) -> BoundaryType:
        """Return UPPER for that word in any case of letters, LOWER for any other text."""
        return cls.UPPER if name.lower() == "upper" else cls.LOWER
