"""Implements `mqadmin completion SHELL`: a script that completes subcommands and options in bash, zsh or fish.

It is written by hand because click's completion knows only click's own commands, and this tool parses its line as Apache's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from twisted_mq.cli.admin.registry import SubCommand, served


def _words(command: SubCommand) -> list[str]:
    """Return all spellings of a subcommand's options, without the blanks at the end of some of Apache's names."""
    words = [f"-{option.short}" for option in command.all_options if option.short]
    words += [f"--{option.long.strip()}" for option in command.all_options if " " not in option.long.strip()]
    return words


def bash() -> str:
    """Return a script for `source <(mqadmin completion bash)`; zsh reads it through bashcompinit."""
    cases = "\n".join(f"    {command.name}) words='{' '.join(_words(command))}';;" for command in served())
    names = " ".join(command.name for command in served())
    return f"""_mqadmin() {{
  local words
  case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
    1:*) words='help {names}';;
    *:help) words='{names}';;
    *) case "${{COMP_WORDS[1]}}" in
{cases}
    esac;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _mqadmin mqadmin"""


def zsh() -> str:
    """Return a script for `source <(mqadmin completion zsh)`."""
    return f"autoload -Uz compinit bashcompinit && compinit -u && bashcompinit\n{bash()}"


def fish() -> str:
    """Return a script for `mqadmin completion fish | source`."""
    lines = ["complete -c mqadmin -f"]
    for command in served():
        lines.append(f"complete -c mqadmin -n __fish_use_subcommand -a {command.name} -d '{_quoted(command.text)}'")
        for option in command.all_options:
            short = f" -s {option.short}" if len(option.short) == 1 else ""
            long = f" -l {option.long.strip()}" if " " not in option.long.strip() else ""
            takes = " -r" if option.has_arg else ""
            seen = f"-n '__fish_seen_subcommand_from {command.name}'"
            if short or long:
                lines.append(f"complete -c mqadmin {seen}{short}{long}{takes} -d '{_quoted(option.text)}'")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


SHELLS: dict[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def print_completion(arguments: Sequence[str]) -> int:
    """Print the script. Returns the exit code; any argument other than one shell's name is an error."""
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        print(f"usage: mqadmin completion {'|'.join(SHELLS)}", file=sys.stderr)
        return 1
    print(SHELLS[arguments[0]]())
    return 0
