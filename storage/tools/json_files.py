"""Writes JSON that contains paths."""

from __future__ import annotations

import json


def json_bytes(value: object) -> bytes:
    """Return indented JSON in UTF-8. Undecodable bytes of a path are escaped as lone surrogates: json.loads restores the path."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode(errors="backslashreplace") + b"\n"
