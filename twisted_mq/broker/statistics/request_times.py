"""Measures how long requests take, by code and answer: put before the processors if metrics are shown (Apache: rpcLatency).

The time runs from a request's turn to its answer, which may come later; how long it waited for its turn is not known. Of
each code, the first EXACT requests of a second are timed. Of the rest only each EVERY-th is timed, and counts EVERY
times: timing all of them would cost a send 5 % more instructions.
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
from twisted_mq.protocol.wire.framing import BINARY_CODE, JSON_CODE, FrameDecoder, code_of_start
from twisted_mq.remoting.channel import Answer, Channel, Processor, Ready

HELD = frozenset(
    {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE, RequestCode.NOTIFICATION}
)
"""Codes whose answers may wait for messages."""
NO_CODE = -1
"""Used instead of a response code if a request failed without one, or has no answer."""
SUCCESS, ONE_WAY, FAILED = "success", "oneway", "process_request_failed"

TimeKey: TypeAlias = tuple[int, int, bool, str]
"""Request code, response code, whether it was held, and the outcome."""


EXACT = 100
EVERY = 256


class RequestTimes:
    """Times of requests; `times` are distributions of ms. `arm` is called each second."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.times: Distributions[TimeKey] = Distributions(LATENCY_LIMITS_MS)
        self.seconds = seconds
        self._codes: list[_Timed] = []

    def of(self, table: Mapping[int, Processor]) -> dict[int, Processor]:
        """Return the table with each processor's calls timed; it replaces an earlier table."""
        self._codes = [_Timed(code, processor, self.times, self.seconds) for code, processor in table.items()]
        return {one.code: one.serving() for one in self._codes}

    def note_together(self, code: int, count: int, began: float, response: int = int(ResponseCode.SUCCESS)) -> None:
        """Record requests that were processed together since `began`; each took the whole time. `response` is that of all."""
        self.times[code, int(response), False, SUCCESS].record((self.seconds() - began) * 1000, count)

    def arm(self) -> None:
        """Time all requests again, until there are many."""
        for one in self._codes:
            one.arm()


class _Timed:
    """The processor of one code, timed."""

    __slots__ = ("_encoded", "_exact", "_processor", "_seconds", "_times", "code", "wake")

    def __init__(
        self, code: int, processor: Processor, times: Distributions[TimeKey], seconds: Callable[[], float]
    ) -> None:
        self.code = code
        self._processor = processor
        self._times, self._seconds = times, seconds
        self._encoded = _Encoded(code, times)
        self._exact = EXACT
        self.wake: Callable[[], None] = lambda: None

    def arm(self) -> None:
        self._exact = EXACT
        self.wake()

    def serving(self) -> Processor:
        """Return the processor; a timed one if it is a request's turn. Each request pays for this, so it is a function
        with a cell.
        """
        processor, left = self._processor, 0

        def serve(channel: Channel, command: RemotingCommand) -> Answer:
            nonlocal left
            if left:
                left -= 1
                return processor(channel, command)
            weight, left = self._turn()
            return self._timed(channel, command, weight)

        def wake() -> None:
            nonlocal left
            left = 0

        self.wake = wake
        return serve

    def _turn(self) -> tuple[int, int]:
        """Return how many requests a timed one counts for, and how many after it are not timed."""
        if not self._exact:
            return EVERY, EVERY - 1
        self._exact -= 1
        return 1, 0

    def _timed(self, channel: Channel, command: RemotingCommand, weight: int) -> Answer:
        began = self._seconds()
        try:
            answer = self._processor(channel, command)
        except Exception as error:
            self._raised(error, began, weight)
            raise
        if isinstance(answer, defer.Deferred):
            answer.addErrback(self._failed, began, weight)
            return answer.addCallback(self._answered, command, began, weight, True)
        if isinstance(answer, bytes) and not command.flag & ONE_WAY_FLAG:
            head = answer[BINARY_CODE] if answer[4] else answer[JSON_CODE]
            self._encoded[head].record((self._seconds() - began) * 1000, weight)
            return answer
        return self._answered(answer, command, began, weight, False)

    def _answered(self, answer: Ready, command: RemotingCommand, began: float, weight: int, waited: bool) -> Ready:
        if answer is not None:
            response = answer.code if isinstance(answer, RemotingCommand) else code_of(answer)
            result = ONE_WAY if command.flag & ONE_WAY_FLAG else SUCCESS
            self._note((self.code, response, waited and self.code in HELD, result), began, weight)
        return answer

    def _failed(self, reason: failure.Failure, began: float, weight: int) -> failure.Failure:
        self._raised(reason.value, began, weight)
        return reason

    def _raised(self, error: BaseException | None, began: float, weight: int) -> None:
        if isinstance(error, BrokerError):
            self._note((self.code, error.response_code, False, SUCCESS), began, weight)
        elif not isinstance(error, defer.CancelledError):
            self._note((self.code, NO_CODE, False, FAILED), began, weight)

    def _note(self, key: TimeKey, began: float, weight: int) -> None:
        self._times[key].record((self._seconds() - began) * 1000, weight)


class _Encoded(dict[bytes, Distribution]):
    """The distributions of one request code's answers, by the bytes that encode the response code."""

    def __init__(self, code: int, times: Distributions[TimeKey]) -> None:
        super().__init__()
        self._code, self._times = code, times

    def __missing__(self, head: bytes) -> Distribution:
        found = self._times[self._code, code_of_start(head), False, SUCCESS]
        self[head] = found
        return found


def code_of(answer: bytes) -> int:
    """Return the response code of an encoded answer."""
    return FrameDecoder().receive_data(answer)[0].code


def names_of_codes(key: TimeKey) -> tuple[str, str]:
    """Return both codes as Apache's labels have them: names in lower case, numbers for codes without a name."""
    request, response = key[:2]
    return _name(RequestCode, request), "" if response == NO_CODE else _name(ResponseCode, response)


def _name(codes: type[RequestCode] | type[ResponseCode], code: int) -> str:
    try:
        return codes(code).name.lower()
    except ValueError:
        return str(code)
