"""The error of an administration request that no server raised."""

from __future__ import annotations

from twisted_mq.routing.errors import ClientError


class AdminError(ClientError):
    """Raised when a request has no result. The text says what is wrong, and what the operator can do."""

    def __init__(self, problem: str, next_step: str = "") -> None:
        one_line = " ".join(problem.split())
        super().__init__(f"{one_line}; {next_step}" if next_step else one_line)
