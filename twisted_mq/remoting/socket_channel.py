"""Implements a remoting connection over a Twisted transport, with the same class at both ends.

All complete frames of one read are processed in order, except for unordered ones (`wire.shapes.Varying`). The answers that are
ready leave in one write, or in several if processing takes long, so that a peer that waits for the first ones can go on. A
processor's answer may also come later (a Deferred). A damaged frame closes the connection with one log line.

While a client does not read its answers, a server reads nothing more from it and processes nothing more of what it has
read (registerProducer); `remoting.budget` bounds what is held for peers. It also bounds requests whose answers are
pending, by channel and in total; past a bound the answer is SYSTEM_BUSY. `Traffic` bounds own requests without an answer.
A peer that does not take its answers gets no request of the server's either; one that left a request without an answer
gets one at a time (`takes_requests`). A read whose commands take long is processed in several turns of the reactor, and the
last of many reads in a later one. The turns are shared out (`remoting.rotation`), so that neither one peer nor many block
the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import attrs
from twisted.internet import defer, interfaces, protocol
from twisted.internet.error import ConnectionDone
from twisted.internet.tcp import Connection
from twisted.python import failure
from zope.interface import implementer

from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, CommandError, FrameError, ProtocolError
from twisted_mq.protocol.remarks import REJECTED
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RESPONSE_FLAG, RemotingCommand
from twisted_mq.protocol.wire.framing import MAX_FRAME_BYTES, FrameDecoder, Received, encode_frame
from twisted_mq.protocol.wire.shapes import NO_SHAPES, Shapes, Streak, one_by_one
from twisted_mq.remoting.awaited_answers import AwaitedAnswers
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.channel import Answer, Later, Processor, Request, StreakProcessors
from twisted_mq.remoting.errors import RemotingSendError, RemotingTooMuchRequestError
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.remoting.shares import address_of, share_of_account
from twisted_mq.remoting.transport import USUAL_READ_BYTES, Transport, next_read_bytes, packed, peer_of, switch_on

PATIENCE_SECONDS = 0.002
"""The time that ready answers wait for those of later frames. Answers that leave together cost both ends less: with 64
senders, 2 ms instead of 0.15 mean a fifth more sends a second (tests.bench.bench_pair).
"""

SLICE_SECONDS = 0.01
"""The time for which the commands of one read are processed before others have their turn."""
LONG_SECONDS = 0.05
"""A single command that takes longer is logged, because no other peer was served meanwhile."""
READY_BYTES = 256 * 1024
"""Ready answers leave at once when they reach this many bytes."""
GRACE_SECONDS = 10.0
"""The time that a peer has to take what is written to it when its connection is closed."""


@attrs.define(eq=False)
class Traffic:
    """The processors, limits and hooks that all channels of one server or client share."""

    processors: Mapping[int, Processor]
    clock: interfaces.IReactorTime
    max_frame_bytes: int = MAX_FRAME_BYTES
    max_awaited: int = 1_000
    """The most own requests of one channel that wait for their answer. Each costs 15 us when the peer goes, all in one turn.
    A peer can have a server send requests to it, by asking for its own running info."""
    sign: Callable[[RemotingCommand], None] | None = None
    """Signs own requests just before they leave."""
    pause_reading: bool = True
    """True if a peer that takes nothing is not read either. Off at the calling side: if both ends stopped reading
    while their own writes are stuck, neither would ever continue.
    """
    end_of_read: Callable[[], object] | None = None
    """Called after each read whose commands were processed and answered."""
    channel_made: Callable[[SocketChannel], None] | None = None
    channel_lost: Callable[[SocketChannel], None] | None = None
    share_moved: Callable[[SocketChannel, str], None] | None = None
    """Called with a channel that uses an account's share from now on, and the address whose share it used before."""
    too_late: Callable[[RemotingCommand, float, int], BrokerError | None] | None = None
    """Returns the refusal of a request that waited that many seconds for its turn, with so many others of its connection;
    None to serve it.
    """
    count: Callable[[str], None] | None = None
    """Called with the events of channels: CONNECT, CLOSE, IDLE, EXCEPTION (Apache: ChannelEventListener)."""
    streaks: StreakProcessors | None = None
    """Answers requests that come many at a time, faster than the processors do."""
    shapes: Shapes = NO_SHAPES
    """The shapes of answers to own requests."""
    pending_answers: int = 0
    requests_dropped: int = 0
    """The number of one-way requests that were not sent because their peers took nothing."""
    long_turns: int = 0
    """The number of commands that took longer than LONG_SECONDS."""
    budget: Budget[SocketChannel] = attrs.field(factory=Budget)
    late: LateAnswers = attrs.field(factory=LateAnswers)
    rotation: Rotation = attrs.field(default=attrs.Factory(lambda self: Rotation(self.clock), takes_self=True))


@implementer(interfaces.IPushProducer)
class SocketChannel(protocol.Protocol):
    """A connection. `remote_address` is (host, port), `packed_address` the same as records hold it; `last_active` is in
    seconds of the clock. `share_address` is the address whose share it is part of, see `remoting.shares`.
    """

    log = Logger()
    transport: Transport  # type: ignore[assignment]  # None only before connectionMade

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._processors = traffic.processors
        self._seconds = traffic.clock.seconds
        self._streaks = traffic.streaks
        self._rotation = traffic.rotation
        self._decoder = FrameDecoder(
            traffic.max_frame_bytes, traffic.shapes if traffic.streaks is None else traffic.streaks.shapes
        )
        self._awaited = AwaitedAnswers(traffic.clock, self.late)
        self.remote_address: tuple[str, int] = ("", 0)
        self.packed_address = b""
        self.share_address = ""
        self.account: str | None = None
        self.last_active = self._seconds()
        self.connected_now = False
        self._unread: list[bytes] = []
        self._read_bytes = USUAL_READ_BYTES
        self._waiting: list[Received] = []
        self._waiting_since = 0.0
        self._pending = 0
        self._incomplete = 0
        self._paused = False
        self._produces = False
        self._is_slow = False
        self._remembered: dict[Hashable, int] = {}
        self._cut_off: interfaces.IDelayedCall | None = None

    def __repr__(self) -> str:
        return f"<Channel {self.address}>"

    @property
    def address(self) -> str:
        """Return the peer's address as host:port."""
        return f"{self.remote_address[0]}:{self.remote_address[1]}"

    # transport events

    def connectionMade(self) -> None:
        self.remote_address = peer_of(self.transport)
        self.packed_address = packed(self.remote_address)
        self.share_address = address_of(self.remote_address[0])
        switch_on(self.transport, "setTcpNoDelay")
        if self._traffic.pause_reading:
            self.transport.registerProducer(self, True)
            self._produces = True
        self.connected_now = True
        self._count("CONNECT")
        if self._traffic.channel_made is not None:
            self._traffic.channel_made(self)

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self.connected_now = False
        if not reason.check(ConnectionDone):
            self._count("EXCEPTION")
        self._count("CLOSE")
        self._forget_what_waits()
        self._traffic.budget.forget(self)
        if self._traffic.channel_lost is not None:
            self._traffic.channel_lost(self)
        self._awaited.fail(
            f"connection to {self.address} lost: {reason.getErrorMessage()}"
        )  # last, because a caller that tries again at once must find another connection

    def _count(self, event: str) -> None:
        if self._traffic.count is not None:
            self._traffic.count(event)

    def dataReceived(self, data: bytes) -> None:
        """Process what was read, or keep it for a later turn, not even decoded, if the reads before it took long."""
        now = self._seconds()
        if self._waiting or self._unread:  # a TLS transport passes on what it has decrypted, paused or not
            self._wait_unread(data)
        elif now >= self._rotation.ask_at and self._produces and self._rotation.is_crowded(now):
            self._wait_for_turn()
            self._wait_unread(data)
        else:
            commands, damage = self._decoded(data)
            if len(data) == self._read_bytes:  # the socket had as much as was asked for
                frames = sum(len(one) if isinstance(one, Streak) else 1 for one in commands)
                self._read_bytes = self.transport.bufferSize = next_read_bytes(self._read_bytes, frames)
            if commands:
                self._process(commands, now)
            if damage is not None:
                self._damaged(damage)

    def _wait_unread(self, data: bytes) -> None:
        """Keep what was read, and count it as an unfinished frame: it is decoded in a later turn."""
        self._unread.append(data)
        self._held(self._incomplete + len(data))

    def _decoded(self, data: bytes) -> tuple[list[Received], FrameError | None]:
        """Return the commands of a read, and the error at their end if a frame is damaged."""
        damage = None
        try:
            commands = self._decoder.receive(data)
        except FrameError as error:
            damage, commands = error, error.commands
        size = self._decoder.incomplete_bytes
        if size != self._incomplete:
            self._held(size)
        return commands, damage

    def _damaged(self, damage: ProtocolError) -> None:
        self._count("EXCEPTION")
        self.log.warn("damaged frame, connection closed: peer={peer} {damage}", peer=self.address, damage=damage)
        self.dataReceived = self._ignore  # type: ignore[method-assign]
        self.close()

    def _held(self, size: int) -> None:
        """Count the bytes of an unfinished frame that wait for the rest, and those that wait to be decoded."""
        self._incomplete = size
        slowest = self._traffic.budget.came(self, size)
        if slowest is not None:
            slowest.cut("incomplete frames use too much memory, and its frame is the oldest")

    def _ignore(self, data: bytes) -> None:
        """Ignore the stream after a damaged frame, because nothing in it can be trusted."""

    # IPushProducer: called by the transport when the peer does not take its answers

    def pauseProducing(self) -> None:
        self._paused = True
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        self._paused = False
        self._traffic.budget.taken(self)
        self._read_on()

    def _read_on(self) -> None:
        """Wait for a turn if something is left to do, else read again."""
        if self._waiting or self._unread:
            self._join()
        else:
            self.transport.resumeProducing()

    def go_on(self) -> None:
        """Process the rest of a read, then read again."""
        if self._paused:
            return
        commands, damage = self._waiting, None
        if commands:
            self._waiting = []
        else:
            data, self._unread = b"".join(self._unread), []
            commands, damage = self._decoded(data)
        now = self._seconds()
        if commands and self._traffic.too_late is not None:
            self.last_active = now
            commands = self._without_late(commands, self._traffic.too_late)
        if commands:
            self._process(commands, now)
        if damage is not None:
            self._damaged(damage)
        elif not self._waiting and not self._paused:
            self._read_on()

    def stopProducing(self) -> None:
        """Do nothing: the transport is gone, and connectionLost follows."""

    # requests of the peer

    def _process(self, commands: list[Received], now: float) -> None:
        ready: list[bytes] = []
        size = 0
        seconds = self._seconds
        self.last_active = now
        due, end = now + PATIENCE_SECONDS, now + SLICE_SECONDS
        remaining = iter(commands)
        for command in remaining:
            answer = self._streak(command) if isinstance(command, Streak) else self._answer(command)
            if answer:
                ready.append(answer)
                size += len(answer)
            now = seconds()
            if now < due and size < READY_BYTES:
                continue
            if now - due > LONG_SECONDS:
                self._long_turn(command, now - due)
            self.write_answers(ready)
            ready, size = [], 0
            if self._paused or (now >= end and self._produces):
                self._keep(list(remaining))
                break
            due = seconds() + PATIENCE_SECONDS
        self.write_answers(ready)
        if self._traffic.end_of_read is not None:
            self._traffic.end_of_read()

    def _answer(self, command: RemotingCommand) -> bytes | None:
        """Process one command. Returns the answer's frame; None if it comes later or not at all."""
        if command.flag & RESPONSE_FLAG:
            self._is_slow = False
            if not self._awaited.answered(command):
                self._unwanted(command)
            return None
        processor = self._processors.get(command.code)
        try:
            if processor is None:
                raise BrokerError(
                    ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {command.code} not supported"
                )
            answer = processor(self, command)
        except Exception:
            answer = self._refusal(command, failure.Failure())
        if type(answer) is not bytes:
            return self._frame(command, answer)
        return None if command.flag & ONE_WAY_FLAG else answer

    def _streak(self, streak: Streak) -> bytes:
        """Process a streak: many requests at a time, and one by one those that cannot be. Returns the frames that are ready."""
        assert self._streaks is not None
        take = self._streaks.takes[streak.family.code]
        ready: list[bytes] = []
        start = 0
        while start < len(streak):
            taken, answers = take(self, streak, start)
            if isinstance(answers, defer.Deferred):
                answers = self._await_answers(streak, start, taken, answers)
            ready.append(answers)
            start += taken
            if start == len(streak):
                break
            try:
                command = streak.plain(start)
            except CommandError as damage:
                self._damaged(damage)
                break
            ready.append(self._answer(command) or b"")
            start += 1
        return b"".join(ready)

    def _unwanted(self, command: RemotingCommand) -> None:
        self.log.debug("unexpected answer, ignored: peer={peer} opaque={o}", peer=self.address, o=command.opaque)

    def _keep(self, commands: list[Received]) -> None:
        """Keep commands for another turn, or until the peer has taken its answers."""
        self._waiting = commands
        if commands:
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Read nothing before the turn. A paused channel waits for its turn when its peer has taken the answers."""
        if not self._paused:
            self.transport.pauseProducing()
            self._join()

    def _join(self) -> None:
        """Wait for a turn."""
        self._waiting_since = self._seconds()
        self._rotation.join(self, self.share_address)

    def _without_late(
        self, received: list[Received], too_late: Callable[[RemotingCommand, float, int], BrokerError | None]
    ) -> list[Received]:
        """Answer the requests that waited too long, and return the others."""
        waited = self._seconds() - self._waiting_since
        served: list[Received] = []
        answers: list[bytes] = []
        try:
            commands = one_by_one(received)
        except CommandError as damage:
            self._damaged(damage)
            return []
        for command in commands:
            error = None if command.flag & RESPONSE_FLAG else too_late(command, waited, len(commands))
            if error is None:
                served.append(command)
            elif (frame := self._frame(command, self._refusal(command, failure.Failure(error)))) is not None:
                answers.append(frame)
        self.write_answers(answers)
        return served

    def _long_turn(self, command: Received, seconds: float) -> None:
        self._traffic.long_turns += 1
        self.log.warn(
            "long turn: seconds={seconds} code={code} peer={peer}",
            seconds=round(seconds, 3),
            code=f"{len(command)} sends" if isinstance(command, Streak) else command.code,
            peer=self.address,
        )

    def write_answers(self, answers: list[bytes]) -> None:
        """Pass answers to the transport in one piece, and count them if the peer does not take them."""
        if not self.connected_now or not answers:
            return
        data = answers[0] if len(answers) == 1 else b"".join(answers)
        write_promptly(self.transport, data)
        if self._paused:
            self._not_taken(len(data))

    def _not_taken(self, size: int) -> None:
        largest = self._traffic.budget.not_taken(self, size)
        if largest is not None:
            largest.cut("waiting answers use too much memory, and it does not read its answers")

    def _frame(self, command: RemotingCommand, answer: Answer) -> bytes | None:
        """Return the answer's bytes; None if it comes later or not at all."""
        if isinstance(answer, defer.Deferred):
            return self._await_answer(command, answer)
        if answer is None or command.flag & ONE_WAY_FLAG:
            return None
        if isinstance(answer, bytes):
            return answer
        answer.opaque = command.opaque
        answer.flag |= RESPONSE_FLAG
        return encode_frame(answer)

    def _await_answer(self, command: RemotingCommand, later: Later) -> bytes | None:
        traffic, limits = self._traffic, self._traffic.budget.options
        size = len(command.body) + len(command.raw_ext_fields or b"")
        if self._pending >= limits.max_held_requests_by_channel or not traffic.budget.hold(self, size):
            later.addErrback(lambda _: None)
            later.cancel()
            return encode_frame(command.answer(ResponseCode.SYSTEM_BUSY, REJECTED))
        traffic.pending_answers += 1
        self._pending += 1
        later.addBoth(self._answered_late, command, size)
        return None

    def _await_answers(self, streak: Streak, start: int, count: int, later: defer.Deferred[bytes]) -> bytes:
        """Do the same for requests of a streak, whose answers come together."""
        traffic, limits = self._traffic, self._traffic.budget.options
        size = sum([len(row[-1]) for row in streak.rows[start : start + count]])
        if self._pending + count > limits.max_held_requests_by_channel or not traffic.budget.hold(self, size, count):
            later.addErrback(lambda _: None)
            later.cancel()
            return _to_each(streak, start, count, lambda one: one.answer(ResponseCode.SYSTEM_BUSY, REJECTED))
        traffic.pending_answers += count
        self._pending += count
        later.addBoth(self._all_answered_late, streak, start, count, size)
        return b""

    def _answered_late(self, answer: Answer | failure.Failure, command: RemotingCommand, size: int) -> None:
        """Write an answer that came after its request's turn. One callback does it all: many requests wait at a time."""
        self._let_go(size, 1)
        try:
            if isinstance(answer, failure.Failure):
                answer = self._refusal(command, answer)
            encoded = self._frame(command, answer) if self.connected_now else None
            if encoded is not None:
                self._traffic.late.write(self, encoded)
        except Exception:
            self.log.failure("answer not sent: peer={peer}", peer=self.address)

    def _all_answered_late(
        self, answers: bytes | failure.Failure, streak: Streak, start: int, count: int, size: int
    ) -> None:
        """Do the same for requests of a streak."""
        self._let_go(size, count)
        try:
            if isinstance(answers, failure.Failure):
                why = answers
                answers = _to_each(streak, start, count, lambda one: self._refusal(one, why))
            if self.connected_now:
                self._traffic.late.write(self, answers)
        except Exception:
            self.log.failure("answers not sent: peer={peer}", peer=self.address)

    def _let_go(self, size: int, count: int) -> None:
        """Stop counting requests that waited for their answers."""
        self._traffic.budget.let_go(self, size, count)
        self._traffic.pending_answers -= count
        self._pending -= count

    def _refusal(self, command: RemotingCommand, reason: failure.Failure) -> RemotingCommand:
        """Turn an error into an answer; this is the only place that does so."""
        error = reason.value
        if isinstance(error, BrokerError):
            return command.answer(error.response_code, error.remark, dict(error.ext_fields))
        if isinstance(error, ProtocolError):
            return command.answer(ResponseCode.SYSTEM_ERROR, str(error))
        self.log.failure("request failed: code={code} peer={peer}", reason, code=command.code, peer=self.address)
        return command.answer(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")

    # what the server remembers of the peer

    def remember(self, name: Hashable, size: int) -> None:
        """Count what is remembered under a name until the connection ends, in place of its earlier size; 0 forgets it.

        Raises BrokerError if that is too much.
        """
        more = size - self._remembered.get(name, 0)
        if not self._traffic.budget.remember(self, more):
            remark = f"{sum(self._remembered.values())} bytes of this connection are remembered, {more} more exceed the limit"
            raise BrokerError(ResponseCode.SYSTEM_BUSY, remark)
        if size:
            self._remembered[name] = size
        else:
            self._remembered.pop(name, None)

    def proven(self, account: str) -> None:
        """Record an allowed signed request: the first one decides whose share the connection uses from now on."""
        if self.account is not None:
            return
        self.account = account
        before, self.share_address = self.share_address, share_of_account(account)
        if self._traffic.share_moved is not None:
            self._traffic.share_moved(self, before)

    # own requests

    @property
    def takes_requests(self) -> bool:
        """Return True if a request may be sent now: earlier writes have left, and a slow peer has answered the last request."""
        return self.connected_now and not self._paused and not (self._is_slow and len(self._awaited.requests))

    def send_request(self, request: Request, timeout_seconds: float) -> defer.Deferred[RemotingCommand]:
        """Send a request and return its answer; sets the opaque of a command.

        Fails with RemotingTimeoutError, RemotingSendError or RemotingTooMuchRequestError.
        """
        if not self.connected_now:
            return defer.fail(RemotingSendError(f"connection to {self.address} lost"))
        if not self.takes_requests:
            return defer.fail(RemotingTooMuchRequestError(f"{self.address} has not read earlier frames"))
        if len(self._awaited.requests) >= self._traffic.max_awaited:
            return defer.fail(
                RemotingTooMuchRequestError(
                    f"{len(self._awaited.requests)} requests to {self.address} wait for an answer"
                )
            )
        opaque = self._awaited.take_opaque()
        frame = self.encoded(request, opaque) if isinstance(request, RemotingCommand) else request(opaque)
        waiting = self._awaited.expect(opaque, timeout_seconds, self.address)
        self.write_request(frame)
        return waiting

    def encoded(self, command: RemotingCommand, opaque: int) -> bytes:
        """Return the frame of an own request with this number."""
        if self._traffic.sign is not None:
            self._traffic.sign(command)
        command.opaque = opaque
        return encode_frame(command)

    def late(self, sent_at: float) -> None:
        """Handle own requests without an answer in time, the last of which was sent then."""
        self._is_slow = True

    def postpone(self, seconds: float) -> None:
        """Extend the time of the requests that wait for their answer."""
        self._awaited.postpone(seconds)

    def send_one_way(self, command: RemotingCommand) -> None:
        """Send without an answer. Dropped if the connection is gone, because one-way promises nothing; dropped and
        counted if the peer does not take what was sent before.
        """
        command.flag |= ONE_WAY_FLAG
        if self._paused:
            self._traffic.requests_dropped += 1
        elif self.connected_now:
            self.write_request(self.encoded(command, self._awaited.take_opaque()))

    def write_request(self, data: bytes) -> None:
        """Pass an own request to the transport unless it is held, and count it if the peer does not take it."""
        if self.holds(data):
            return
        write_promptly(self.transport, data)
        if self._paused:
            self._not_taken(len(data))

    def holds(self, data: bytes) -> bool:
        """Return whether an own request is kept, to leave with others."""
        return False

    def close(self) -> None:
        """Close after everything written has left; a peer that does not take it is cut off after GRACE_SECONDS."""
        if not self.connected_now:
            return
        if self._produces:  # a transport with a producer waits for it, and this one may be paused
            self._produces = False
            self.transport.unregisterProducer()
        self._forget_what_waits()
        self._cut_off = self._traffic.clock.callLater(
            GRACE_SECONDS, self._past_grace
        )  # a transport may be gone at once
        self.transport.loseConnection()

    def _forget_what_waits(self) -> None:
        self._unread, self._waiting = [], []
        self._rotation.leave(self)
        if self._cut_off is not None:
            self._cut_off.cancel()
            self._cut_off = None

    def _past_grace(self) -> None:
        self._cut_off = None
        self.abort()

    def cut(self, reason: str) -> None:
        """Close at once, with one log line that says why."""
        self.log.warn("connection cut: peer={peer} {reason}", peer=self.address, reason=reason)
        self.abort()

    def abort(self) -> None:
        """Close at once. What the peer did not take is lost, and so are writes before the loss is reported."""
        if self.connected_now:
            self.connected_now = False
            self.transport.abortConnection()


def _to_each(streak: Streak, start: int, count: int, answer: Callable[[RemotingCommand], RemotingCommand]) -> bytes:
    """Return the frames of the answers to some requests of a streak."""
    return b"".join(encode_frame(answer(streak.plain(index))) for index in range(start, start + count))


def write_promptly(transport: Transport, data: bytes) -> None:
    """Pass `data` to the socket now if nothing waits before it; what the socket does not take is buffered as usual.

    Twisted's `write` waits for the reactor's next turn and for two epoll_ctl calls: a fifth of the cost of a single send,
    and the peer waits for it. Data that the socket would not take in one piece is also buffered, so that it is not
    copied. Other transports than a plain connection (tests, TLS and other wrappers) get everything through `write`. The
    reactor detects a broken connection, as after `write`.
    """
    if (
        not isinstance(transport, Connection)
        or transport.TLS
        or not transport.connected
        or transport._tempDataBuffer
        or transport.dataBuffer
        or len(data) > transport.SEND_LIMIT
    ):
        transport.write(data)
        return
    sent = transport.writeSomeData(data)
    if sent != len(data):
        transport.write(data[sent:] if isinstance(sent, int) and sent > 0 else data)
