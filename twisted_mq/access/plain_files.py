"""Reads the files of access control 1.0: conf/plain_acl.yml and all YAML below conf/acl, again when they change
(Apache: PlainPermissionManager, AclFileWatchService).

A file that is damaged while the server runs changes nothing: the earlier accounts stay, and the fault is logged once.
"""

from __future__ import annotations

import os

import attrs

from twisted_mq.access.plain_accounts import PlainAccounts, read_accounts, together
from twisted_mq.config.errors import ConfigError
from twisted_mq.logs import Logger

LOOK_SECONDS = 5.0
"""The interval at which the files are checked for changes (Apache: AclFileWatchService, 5 s)."""

MOST_BYTES = 16 * 1024 * 1024

Stamp = tuple[tuple[str, int, int, int], ...]


@attrs.define(eq=False)
class PlainFiles:
    """The files of a home folder. `accounts` is their content when they were last read whole."""

    home: str
    accounts: PlainAccounts = attrs.field(factory=PlainAccounts)
    version: object = None
    """A value that changes after the accounts were read again, which is done in a thread."""
    log = Logger()
    _stamp: Stamp = ()
    _damage: str = ""

    def load(self) -> None:
        """Read the files at the start. Raises ConfigError if none exists, or one is damaged."""
        try:
            self._stamp, self.accounts = self._read()
        except (OSError, ValueError) as error:
            raise ConfigError(str(error), key="aclEnable", value="true") from error
        if not self._stamp:
            raise ConfigError(f"no accounts in {self._default}", key="aclEnable", value="true")

    def look(self) -> None:
        """Read the files again if they changed. Call it every LOOK_SECONDS."""
        try:
            stamp = self._stamp_now()
            if stamp == self._stamp:
                return
            self._stamp, self.accounts = self._read()
            self.version = stamp
        except (OSError, ValueError) as error:
            self._damaged(str(error))
            return
        self._damage = ""
        self.log.info("accounts reloaded: accounts={n} files={f}", n=len(self.accounts.accounts), f=len(stamp))

    def _damaged(self, problem: str) -> None:
        if problem != self._damage:
            self.log.error("accounts not reloaded: {problem}", problem=problem)
        self._damage = problem

    @property
    def _default(self) -> str:
        return os.path.join(self.home, "conf", "plain_acl.yml")

    def _paths(self) -> list[str]:
        found = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(os.path.join(self.home, "conf", "acl"))
            for name in names
            if name.endswith((".yml", ".yaml"))
        ]
        return sorted(found) + ([self._default] if os.path.exists(self._default) else [])

    def _stamp_now(self) -> Stamp:
        stats = [(path, os.stat(path)) for path in self._paths()]
        return tuple((path, one.st_mtime_ns, one.st_size, one.st_ino) for path, one in stats)

    def _read(self) -> tuple[Stamp, PlainAccounts]:
        stamp = self._stamp_now()
        files = [self._read_file(path) for path, *_ in stamp]
        return stamp, together(files, lambda key: self.log.warn("accessKey {key} is in several files", key=key))

    def _read_file(self, path: str) -> PlainAccounts:
        """Read one file. Raises OSError, ValueError."""
        import yaml

        with open(path, "rb") as file:
            text = file.read(MOST_BYTES)
        try:
            return read_accounts(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        except (yaml.YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            raise ValueError(f"{path}{f' line {mark.line + 1}' if mark else ''}: not valid YAML") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
