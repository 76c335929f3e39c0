"""Parses command lines as Apache's admin tool does (commons-cli's DefaultParser and HelpFormatter).

It is written by hand because argparse and click differ where scripts would notice: `-topic X` and `--top X` are accepted,
a value may begin with a dash unless it is an option, extra words are ignored; usage and errors have their own form.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import attrs
import msgspec

from twisted_mq.cli.admin.java_format import parse_time

HELP_WIDTH = 110
"""Columns of Apache's help (ServerUtil)."""


class UsageError(Exception):
    """Raised for a command line that does not fit its options; the text is that of Apache's tool."""


class Option(msgspec.Struct, frozen=True):
    """An option; `group` names options of which exactly one must be given. Some have only a long name."""

    short: str
    long: str
    text: str
    has_arg: bool = True
    required: bool = False
    group: str | None = None
    ours: bool = False
    """Apache's tool does not have it: users must spell it out, so that all short forms keep Apache's meaning."""

    @property
    def key(self) -> str:
        """Return the name of its value: the letter, or the long name without one."""
        return self.short or self.long

    @property
    def spelled(self) -> str:
        """Return the option as a usage line has it."""
        return f"-{self.short}" if self.short else f"--{self.long}"

    @property
    def usage(self) -> str:
        return f"{self.spelled} <arg>" if self.has_arg else self.spelled


GLOBAL_OPTIONS = (
    Option("h", "help", "Print help", has_arg=False),
    Option("n", "namesrvAddr", "name servers as host:port, separated by ';' (default: the variable NAMESRV_ADDR)"),
)


@attrs.frozen
class CommandLine:
    """The given options: letter -> value (empty for a flag)."""

    values: dict[str, str]

    def __contains__(self, short: str) -> bool:
        return short in self.values

    def value(self, short: str, default: str = "") -> str:
        """Return the trimmed value of an option."""
        return self.values.get(short, default).strip()

    def number(self, short: str, default: int) -> int:
        """Return a whole number. Raises UsageError for anything else."""
        text = self.values.get(short)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"Option -{short} must be a whole number, got {text!r}") from None

    def time(self, short: str, now_ms: int) -> int:
        """Return a time as `parse_time` reads it, in ms since 1970. Raises UsageError for anything else."""
        try:
            return parse_time(self.value(short), now_ms)
        except (ValueError, OverflowError):
            raise UsageError(
                f"Option -{short} must be ms since 1970 or yyyy-MM-dd#HH:mm:ss:SSS, got {self.value(short)!r}"
            ) from None

    def charset(self, short: str) -> str:
        """Return the charset of an option's value, UTF-8 by default. Raises UsageError for an unknown one."""
        name = self.value(short) or "UTF-8"
        try:
            b"x".decode(name, "replace")  # an empty name is not looked up
        except (LookupError, ValueError):
            raise UsageError(f"Option -{short}: unknown charset {name!r}") from None
        return name

    def is_true(self, short: str, default: bool = False) -> bool:
        """Return Boolean.parseBoolean of a value: anything but true, in any case, is false."""
        return self.value(short).lower() == "true" if short in self else default

    def parts(self, short: str, separator: str = ",") -> list[str]:
        """Return the parts of a value, trimmed, without the empty ones."""
        return [part.strip() for part in self.value(short).split(separator) if part.strip()]


def parse_command_line(options: Sequence[Option], arguments: Sequence[str]) -> CommandLine:
    """Parse the arguments after the subcommand. Raises UsageError."""
    parser = _Parser(options)
    parser.read(arguments)
    if "h" not in parser.values:  # Apache's tool asks for the others even then
        parser.check_required()
    return CommandLine(parser.values)


class _Parser:
    def __init__(self, options: Sequence[Option]) -> None:
        self._options = options
        self._short = {option.short: option for option in options if option.short}
        self.values: dict[str, str] = {}
        self._awaits: Option | None = None
        self._selected: dict[str, Option] = {}

    def read(self, arguments: Sequence[str]) -> None:
        tokens = iter(arguments)
        for token in tokens:
            if token == "--":
                break
            self._token(token)
        self._check_value()

    def check_required(self) -> None:
        missing = [_missing_name(self._options, option) for option in self._options if self._is_missing(option)]
        missing = list(dict.fromkeys(missing))
        if missing:
            raise UsageError(f"Missing required option{'s' * (len(missing) > 1)}: {', '.join(missing)}")

    def _is_missing(self, option: Option) -> bool:
        if option.group is not None:
            return option.group not in self._selected
        return option.required and option.key not in self.values

    def _token(self, token: str) -> None:
        if self._awaits is not None and not self._is_option(token):
            self._set_value(token)
        elif token.startswith("--"):
            self._long(token)
        elif token.startswith("-") and token != "-":
            self._dashed(token)

    def _is_option(self, token: str) -> bool:
        """Return True if a token names an option, so that it cannot be the value of the one before."""
        if not token.startswith("-") or token == "-":
            return False
        name = token.lstrip("-").split("=", 1)[0]
        return bool(name) and (bool(self._matching(name)) or (token[1] != "-" and name[0] in self._short))

    def _matching(self, name: str) -> list[Option]:
        exact = [option for option in self._options if option.long == name]
        return exact or [one for one in self._options if one.long.startswith(name) and not one.ours]

    def _long(self, token: str) -> None:
        name, equals, value = token.lstrip("-").partition("=")
        matching = self._matching(name) if name else []
        if not matching:
            raise UsageError(f"Unrecognized option: {token}")
        if len(matching) > 1:
            names = ", ".join(f"'{option.long}'" for option in matching)
            raise UsageError(f"Ambiguous option: '{token}'  (could be: {names})")
        if equals and not matching[0].has_arg:
            raise UsageError(f"Unrecognized option: {token}")
        self._begin(matching[0])
        if equals:
            self._set_value(value)

    def _dashed(self, token: str) -> None:
        """Parse a token with one dash: a letter, a letter with `=value`, a long name, or several letters."""
        name, equals, value = token[1:].partition("=")
        option = self._short.get(name)
        if option is not None and (not equals or option.has_arg):
            self._begin(option)
            if equals:
                self._set_value(value)
        elif self._matching(name):
            self._long(token)
        else:
            self._run_together(token)

    def _run_together(self, token: str) -> None:
        for position, letter in enumerate(token[1:], 2):
            option = self._short.get(letter)
            if option is None:
                raise UsageError(f"Unrecognized option: {token}")
            self._begin(option)
            if option.has_arg:
                if position < len(token):
                    self._set_value(token[position:])
                return

    def _begin(self, option: Option) -> None:
        self._check_value()
        if option.group is not None:
            selected = self._selected.setdefault(option.group, option)
            if selected is not option:
                raise UsageError(
                    f"The option '{option.short}' was specified but an option from this group has already been "
                    f"selected: '{selected.short}'"
                )
        if option.has_arg:
            self._awaits = option
        else:
            self.values[option.key] = ""

    def _set_value(self, value: str) -> None:
        assert self._awaits is not None
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise UsageError(f"Option {self._awaits.spelled} must be text in UTF-8, got {value!r}")
        self.values.setdefault(self._awaits.key, value)
        self._awaits = None

    def _check_value(self) -> None:
        if self._awaits is not None:
            raise UsageError(f"Missing argument for option: {self._awaits.key}")


def _missing_name(options: Sequence[Option], option: Option) -> str:
    if option.group is None:
        return option.key
    members = [member for member in options if member.group == option.group]
    return "[" + ", ".join(f"-{member.short} {member.text}" for member in members) + "]"


def help_text(name: str, options: Sequence[Option]) -> str:
    """Return the usage line and option table of a subcommand."""
    ordered = sorted(options, key=lambda option: option.key.lower())
    usage = f"usage: mqadmin {name} " + " ".join(_usage_parts(ordered))
    lines = textwrap.wrap(usage, HELP_WIDTH, subsequent_indent=" " * 7, break_long_words=False, break_on_hyphens=False)
    heads = [_head(option) + " <arg>" * option.has_arg for option in ordered]
    width = max(map(len, heads)) + 3
    for head, option in zip(heads, ordered, strict=True):
        lines += textwrap.wrap(
            option.text,
            HELP_WIDTH,
            initial_indent=head.ljust(width),
            subsequent_indent=" " * width,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _head(option: Option) -> str:
    return f" -{option.short},--{option.long}" if option.short else f"    --{option.long}"


def _usage_parts(ordered: Sequence[Option]) -> Iterator[str]:
    """Yield the options of the usage line; a group is at its first member's place, and the others leave an empty part."""
    shown: set[str] = set()
    for option in ordered:
        if option.group is None:
            yield option.usage if option.required else f"[{option.usage}]"
        elif option.group in shown:
            yield ""
        else:
            shown.add(option.group)
            yield " | ".join(member.usage for member in ordered if member.group == option.group)
