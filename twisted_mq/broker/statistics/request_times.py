"""How long requests take, by code and answer: put before the processors where figures are shown (Apache: rpcLatency).

Measured from a request's turn to its answer, which may come later; what it waited for its turn is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.statistics.distributions import LATENCY_LIMITS_MS, Distribution, Distributions
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand
from twisted_mq.protocol.wire.framing import HEAD_BYTES, FrameDecoder
from twisted_mq.remoting.channel import Answer, Channel, Processor, Ready

HELD = frozenset(
    {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE, RequestCode.NOTIFICATION}
)
"""Codes whose answers may wait for messages."""
NO_CODE = -1
"""In place of a response code where a request failed without one, or is answered by nothing."""
SUCCESS, ONE_WAY, FAILED = "success", "oneway", "process_request_failed"
_JSON_CODE, _BINARY_CODE = slice(HEAD_BYTES, HEAD_BYTES + 13), slice(HEAD_BYTES, HEAD_BYTES + 2)
"""Where an encoded answer says its code: the frame goes on with {"code":19, or with the code in two bytes."""

TimeKey: TypeAlias = tuple[int, int, bool, str]
"""Request code, response code, whether it was held, what came of it."""


class RequestTimes:
    """`times` are distributions of ms."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.times: Distributions[TimeKey] = Distributions(LATENCY_LIMITS_MS)
        self._seconds = seconds

    def of(self, table: Mapping[int, Processor]) -> dict[int, Processor]:
        """The table with each processor's calls timed."""
        return {code: self._timed(code, processor) for code, processor in table.items()}

    def _timed(self, code: int, processor: Processor) -> Processor:
        seconds, encoded, later = self._seconds, _Encoded(code, self.times), self._later

        def serve(channel: Channel, command: RemotingCommand) -> Answer:
            began = seconds()
            try:
                answer = processor(channel, command)
            except Exception as error:
                self._raised(code, error, began)
                raise
            if type(answer) is bytes and not command.flag & ONE_WAY_FLAG:
                encoded[answer[_BINARY_CODE] if answer[4] else answer[_JSON_CODE]].record((seconds() - began) * 1000)
                return answer
            return later(code, command, answer, began)

        return serve

    def _later(self, code: int, command: RemotingCommand, answer: Answer, began: float) -> Answer:
        if isinstance(answer, defer.Deferred):
            answer.addErrback(self._failed, code, began)
            return answer.addCallback(self._answered, code, command, began, True)
        return self._answered(answer, code, command, began, False)

    def _answered(self, answer: Ready, code: int, command: RemotingCommand, began: float, waited: bool) -> Ready:
        if answer is not None:
            response = answer.code if isinstance(answer, RemotingCommand) else code_of(answer)
            result = ONE_WAY if command.flag & ONE_WAY_FLAG else SUCCESS
            self._note((code, response, waited and code in HELD, result), began)
        return answer

    def _failed(self, reason: failure.Failure, code: int, began: float) -> failure.Failure:
        self._raised(code, reason.value, began)
        return reason

    def _raised(self, code: int, error: BaseException | None, began: float) -> None:
        if isinstance(error, BrokerError):
            self._note((code, error.response_code, False, SUCCESS), began)
        elif not isinstance(error, defer.CancelledError):
            self._note((code, NO_CODE, False, FAILED), began)

    def _note(self, key: TimeKey, began: float) -> None:
        self.times[key].record((self._seconds() - began) * 1000)


class _Encoded(dict[bytes, Distribution]):
    """The distribution of one request code's answers, by the bytes in which they say their code."""

    def __init__(self, code: int, times: Distributions[TimeKey]) -> None:
        super().__init__()
        self._code, self._times = code, times

    def __missing__(self, head: bytes) -> Distribution:
        response = int(head.partition(b":")[2].partition(b",")[0]) if len(head) > 2 else int.from_bytes(head, "big")
        found = self._times[self._code, response, False, SUCCESS]
        self[head] = found
        return found


def code_of(answer: bytes) -> int:
    """The response code of an encoded answer."""
    return FrameDecoder().receive_data(answer)[0].code


def names_of_codes(key: TimeKey) -> tuple[str, str]:
    """Both codes as Apache's labels have them: names in lower case, numbers where there is none."""
    request, response = key[:2]
    return _name(RequestCode, request), "" if response == NO_CODE else _name(ResponseCode, response)


def _name(codes: type[RequestCode] | type[ResponseCode], code: int) -> str:
    try:
        return codes(code).name.lower()
    except ValueError:
        return str(code)
