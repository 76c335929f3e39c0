"""Defines the errors of a configuration, with texts that help to correct it."""

from __future__ import annotations


class ConfigError(Exception):
    """Raised for a configuration with which a daemon refuses to start; the text is one line.

    `path` is None for values from the command line or a request; `key` and `value` are None for a file that cannot
    be read at all.
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        line: int | None = None,
        key: str | None = None,
        value: str | None = None,
    ) -> None:
        super().__init__(reason, path, line, key, value)
        self.reason = reason
        self.path = path
        self.line = line
        self.key = key
        self.value = value

    def __str__(self) -> str:
        line = None if self.line is None else f"line {self.line}"
        place = [" ".join(part for part in (self.path, line) if part)] if self.path or line else []
        setting = [] if self.key is None else [f"{self.key}={self.value}"]
        return ": ".join([*place, *setting, self.reason])


class KeyNotAllowed(ConfigError):
    """Raised when a remote update names a key that is not on the allow-list."""
