"""What an operator's question fails with beside what servers refuse."""

from __future__ import annotations

from twisted_mq.routing.errors import ClientError


class AdminError(ClientError):
    """Raised when a question has no answer: the text says what is wrong, and what the operator can do about it."""

    def __init__(self, problem: str, next_step: str = "") -> None:
        one_line = " ".join(problem.split())
        super().__init__(f"{one_line}; {next_step}" if next_step else one_line)
