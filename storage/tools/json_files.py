"""JSON that names paths."""

from __future__ import annotations

import json


def json_bytes(value: object) -> bytes:
    """Indented JSON in UTF-8. Bytes of a path that are none stay lone surrogates, escaped: json.loads gives the same path."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode(errors="backslashreplace") + b"\n"
