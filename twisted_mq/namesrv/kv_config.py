"""The key-value configuration: namespaces of keys in one JSON file (Apache: KVConfigManager).

File: {"configTable":{"NAMESPACE":{"key":"value"}}}; the version before stands in FILE.bak. A change is on disk when its
call returns. A file that cannot be read does not hold up the start: the other version takes its place.
"""

from __future__ import annotations

import json
import os
import shutil

from twisted_mq.logs import Logger

"""Namespace of strictly ordered topics: topic -> "broker:queues;..." (Apache: NamesrvUtil)."""

Namespaces = dict[str, dict[str, str]]


class KVConfig:
    """All namespaces, in memory and in the file at `path`."""

    log = Logger()

    def __init__(self, path: str) -> None:
        self._path = path
        self._namespaces: Namespaces = {}

    def load(self) -> None:
        """Read the file, or its .bak where it is damaged; with neither, start empty."""
        for path in (self._path, f"{self._path}.bak"):
            try:
                self._namespaces = _read(path)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                self.log.error("key-value configuration not read: file={path} error={error}", path=path, error=error)
                continue
            self.log.info(
                "key-value configuration read: file={path} namespaces={n}", path=path, n=len(self._namespaces)
            )
            return

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a key. Raises OSError where it cannot be written; then nothing changed."""
        changed = self._copy()
        changed.setdefault(namespace, {})[key] = value
        self._save(changed)

    def delete(self, namespace: str, key: str) -> None:
        """Drop a key; its namespace stays. Raises OSError where that cannot be written; then nothing changed."""
        if key in self._namespaces.get(namespace, {}):
            changed = self._copy()
            del changed[namespace][key]
            self._save(changed)

    def get(self, namespace: str, key: str) -> str | None:
        """The value, or None."""
        return self._namespaces.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """All keys of a namespace; None where nothing was ever put in it."""
        keys = self._namespaces.get(namespace)
        return None if keys is None else dict(keys)

    def _copy(self) -> Namespaces:
        return {namespace: dict(keys) for namespace, keys in self._namespaces.items()}

    def _save(self, changed: Namespaces) -> None:
        """Write aside, keep the version before as .bak, replace in one step, then show the change."""
        os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
        temporary = f"{self._path}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"configTable": changed}, file, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(self._path):
            _keep(self._path, f"{self._path}.bak")
        os.replace(temporary, self._path)
        self._namespaces = changed


def _keep(path: str, backup: str) -> None:
    """Copy a file to `backup`, which is replaced in one step."""
    aside = f"{backup}.tmp"
    shutil.copyfile(path, aside)
    os.replace(aside, backup)


def _read(path: str) -> Namespaces:
    """The namespaces of a file. Raises OSError, ValueError."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    table = content.get("configTable") if isinstance(content, dict) else None
    if not isinstance(table, dict) or not all(_is_text_map(keys) for keys in table.values()):
        raise ValueError("no table of namespaces under configTable")
    return table


def _is_text_map(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
