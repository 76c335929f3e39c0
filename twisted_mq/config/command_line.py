"""Parses the command lines of the two daemons: --config, --set and the options for single keys.

A mistake gives one line on standard error and exit status 1, whether it is in the options or in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from twisted.python import usage

from twisted_mq.config.daemon_log import log_path, writes_to_stdout
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.garbage import wait_for_start
from twisted_mq.config.options import load_options
from twisted_mq.extras import MissingExtra
from twisted_mq.logs import log_to_twisted
from twisted_mq.version import version_line

Settings = TypeVar("Settings")

OWN_FILES = 0o077
"""The umask with which files are 0600 and directories 0700."""


class DaemonOptions(usage.Options, Generic[Settings]):
    """The options of a daemon. Subclasses set its name, its options class and the table option -> Java key; `settings` is
    the result.
    """

    daemon: ClassVar[str]
    settings_class: type[Settings]
    settings: Settings
    java_keys: ClassVar[Mapping[str, str]]
    optParameters: ClassVar[list[list[str | None]]] = [
        ["config", "c", None, "RocketMQ properties file, in the format of Apache's -c"],
    ]

    optFlags: ClassVar[list[list[str | None]]] = [
        ["ignore-unsupported", None, "start even if a safety key is set that is not supported"],
        ["strict", None, "refuse unknown keys, keys without effect, and values out of range"],
    ]

    def __init__(self) -> None:
        super().__init__()
        self._set: dict[str, str] = {}

    def opt_version(self) -> None:
        """Print the version."""
        print(version_line(self.daemon))
        raise SystemExit(0)

    @property
    def umask(self) -> int | None:
        """Return the umask to set: twistd sets one only in the background, or if given one."""
        return None if self.parent is None or self.parent.get("umask") is not None else OWN_FILES

    @property
    def log_path(self) -> str | None:
        """Return the file that twistd's log goes to, or None."""
        return None if self.parent is None else log_path(self.parent)

    @property
    def logs_to_stdout(self) -> bool:
        """Return True if twistd writes its log to standard output."""
        return self.parent is not None and writes_to_stdout(self.parent)

    def opt_set(self, setting: str) -> None:
        """KEY=VALUE: any key of the properties file; may be given several times."""
        key, separator, value = setting.partition("=")
        if not separator:
            raise usage.UsageError(f"--set {setting}: must be KEY=VALUE")
        self._set[key.strip()] = value

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """Parse as usage.Options does, but end the process on a mistake."""
        if self.parent is not None:  # twistd: a process of its own
            wait_for_start()
        try:
            super().parseOptions(options)
        except (usage.UsageError, ConfigError, MissingExtra) as error:
            raise SystemExit(f"{self.daemon}: {error}") from error

    def parseArgs(self, *words: str) -> None:
        if words:
            raise usage.UsageError(f"{words[0]!r} is not an option; see --help")

    def postOptions(self) -> None:
        log_to_twisted()
        self.settings = load_options(
            self.settings_class,
            self["config"],
            self.overrides(),
            ignore_unsupported=bool(self["ignore-unsupported"]),
            strict=bool(self["strict"]),
        )

    def overrides(self) -> dict[str, str]:
        """Return Java key -> text of the values on the command line."""
        given = {key: self[name] for name, key in self.java_keys.items() if self[name] is not None}
        return {**self._set, **given}
