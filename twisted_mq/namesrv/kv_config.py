"""Keeps the key-value configuration: namespaces of keys in one JSON file (Apache: KVConfigManager).

File: {"configTable":{"NAMESPACE":{"key":"value"}}}; FILE.bak has the version before. A change has three steps, of which
`write` may run in a thread: changed, write, show. If a file cannot be read, the start goes on with the other version.
"""

from __future__ import annotations

import json
import os

from twisted_mq.logs import Logger
from twisted_mq.protocol.text.fastjson import dumps
from twisted_mq.storage.files.replace_file import replace_file

Namespaces = dict[str, dict[str, str]]

MAX_BYTES = 1024 * 1024
"""The limit of names, keys and values together, because each change writes all of them. Apache has no limit."""
BYTES_OF_KEY = 8
"""The bytes that a key or a namespace counts in addition to its text."""


class KVConfigFull(Exception):
    """Raised for a key for which there is no room."""


class KVConfig:
    """All namespaces, in memory and in the file at `path`."""

    log = Logger()

    def __init__(self, path: str) -> None:
        self._path = path
        self._namespaces: Namespaces = {}
        self._size = 0

    def load(self) -> None:
        """Read the file, or its .bak if it is damaged; with neither, start empty."""
        for path in (self._path, f"{self._path}.bak"):
            try:
                self.show(_read(path))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                self.log.error("key-value configuration not read: file={path} error={error}", path=path, error=error)
                continue
            self.log.info(
                "key-value configuration read: file={path} namespaces={n}", path=path, n=len(self._namespaces)
            )
            return

    def changed(self, namespace: str, key: str, value: str | None) -> Namespaces | None:
        """Return all namespaces with a key set, or dropped (None); its namespace stays. None if nothing changes.

        Raises KVConfigFull.
        """
        before = self.get(namespace, key)
        if before == value:
            return None
        changed = {one: dict(keys) for one, keys in self._namespaces.items()}
        if value is None:
            del changed[namespace][key]
            return changed
        changed.setdefault(namespace, {})[key] = value
        size = _size(changed)
        if size > max(MAX_BYTES, self._size):
            raise KVConfigFull(
                f"namespace={namespace[:200]} key={key[:200]}: with this value of {len(value)} characters the key-value "
                f"configuration would have {size} bytes, the limit is {MAX_BYTES}"
            )
        return changed

    def show(self, namespaces: Namespaces) -> None:
        """Use these namespaces from now on, because they are written."""
        self._namespaces = namespaces
        self._size = _size(namespaces)

    def get(self, namespace: str, key: str) -> str | None:
        """Return the value, or None."""
        return self._namespaces.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Return all keys of a namespace; None if it never had any."""
        keys = self._namespaces.get(namespace)
        return None if keys is None else dict(keys)

    def write(self, namespaces: Namespaces) -> None:
        """Keep the version before as .bak, and replace it in one step. Raises OSError: then nothing changed."""
        if os.path.exists(self._path):
            with open(self._path, "rb") as before:
                replace_file(f"{self._path}.bak", before.read())
        replace_file(self._path, dumps({"configTable": namespaces}))


def _size(namespaces: Namespaces) -> int:
    texts = [text for keys in namespaces.values() for pair in keys.items() for text in pair]
    texts += namespaces
    return sum(len(text.encode()) for text in texts) + BYTES_OF_KEY * len(texts)


def _read(path: str) -> Namespaces:
    """Return the namespaces of a file. Raises OSError, ValueError."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    table = content.get("configTable") if isinstance(content, dict) else None
    if not isinstance(table, dict) or not all(_is_text_map(keys) for keys in table.values()):
        raise ValueError("configTable is not a table of namespaces")
    return table


def _is_text_map(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
