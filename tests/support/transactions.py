"""Requests of transaction tests."""

from __future__ import annotations


def half_fields(key: str, now_ms: int, more: str = "", queue_id: int = 2) -> dict[str, str]:
    """A one-letter send header of a half message of group PG for topic T; `more` are further properties."""
    return {
        "a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": str(queue_id), "f": "4", "g": str(now_ms),
        "h": "7", "j": "0", "k": "false", "m": "false",
        "i": f"TRAN_MSG\x01true\x02UNIQ_KEY\x01{key}\x02PGROUP\x01PG\x02TAGS\x01A\x02{more}",
    }  # fmt: skip
