"""Makes RocketMQ's status of an answer or an error (apache.rocketmq.v2.Code)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RocketMQError
from twisted_mq.proxy.messages import Code, Status
from twisted_mq.remoting.errors import RemotingTimeoutError, RemotingTooMuchRequestError
from twisted_mq.routing.errors import TopicNotFound

CODES: Mapping[int, str] = {
    ResponseCode.SYSTEM_BUSY: "TOO_MANY_REQUESTS",
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: "NOT_IMPLEMENTED",
    ResponseCode.TOPIC_NOT_EXIST: "TOPIC_NOT_FOUND",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: "CONSUMER_GROUP_NOT_FOUND",
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: "ILLEGAL_FILTER_EXPRESSION",
    ResponseCode.NO_PERMISSION: "FORBIDDEN",
}
"""Response codes of brokers that have a status of their own; others are FAILED."""
FAILED = "INTERNAL_SERVER_ERROR"


class ProxyError(Exception):
    """A request that is refused: the answer carries this code, by its name in Code, and this message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


def status(code: str, message: str = "") -> Any:
    """Return a Status; without a message it carries the code's name."""
    return Status(code=Code.Value(code), message=message or code)


_OK = status("OK")


def ok() -> Any:
    """Return the Status of success. It is one for all answers, which copy it."""
    return _OK


def status_of(error: Exception) -> Any | None:
    """Return the Status for an error; None for an unexpected error."""
    if isinstance(error, ProxyError):
        return status(error.code, error.message)
    if isinstance(error, BrokerError):
        return status(CODES.get(error.response_code, FAILED), error.remark)
    for kind, code in _ERRORS:
        if isinstance(error, kind):
            return status(code, str(error))
    return None


_ERRORS: tuple[tuple[type[Exception], str], ...] = (
    (TopicNotFound, "TOPIC_NOT_FOUND"),
    (RemotingTimeoutError, "PROXY_TIMEOUT"),
    (RemotingTooMuchRequestError, "TOO_MANY_REQUESTS"),
    (RocketMQError, FAILED),
)


class TakenTogether(NamedTuple):
    """Calls that were handled together: their answers in frames, and how many of these have the status FAILED. Others are OK."""

    answers: Sequence[bytes] = ()
    failed: int = 0


def common_status(statuses: Iterable[Any]) -> Any:
    """Return the status of an answer with entries: theirs if they agree, otherwise MULTIPLE_RESULTS."""
    found = list(statuses)
    return found[0] if len({one.code for one in found}) == 1 else status("MULTIPLE_RESULTS")
