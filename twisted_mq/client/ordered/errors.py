"""Errors of strictly ordered queues; each text says what would resolve it."""

from __future__ import annotations

from twisted_mq.client.core.errors import ClientError
from twisted_mq.ordering.documents import DocumentFault


class OrderedError(ClientError):
    """Root of the errors of ordered producers and consumers. No message of a queue is stored after one that failed."""


class CoordinatorUnknown(OrderedError):
    """Raised when neither the user nor a broker gives the coordinator's address."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"no broker of topic {topic} reports its coordinator (key orderCoordinator); "
            'use the argument coordinator="HOST:PORT,HOST:PORT/chroot"'
        )
        self.topic = topic


class CoordinatorUnreachable(OrderedError):
    """Raised when the coordinator does not answer, or refuses this client; `__cause__` is its error."""

    def __init__(self, place: str, cause: BaseException) -> None:
        super().__init__(
            f"the coordinator cannot be reached for {place}: {cause}. Check that it runs, and check the coordinator argument "
            "(servers, chroot, rights)"
        )
        self.__cause__ = cause


class OrderedTopicUnknown(OrderedError):
    """The coordinator does not have the topic: it is not an ordered one, or the chroot is another cluster's."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"topic {topic} is not declared as ordered. Declare it: mq order create {topic} --queues N --groups a,b. "
            "If it is already declared, the chroot of the coordinator's address is wrong. "
            "For topics without strict order use Producer and PushConsumer"
        )
        self.topic = topic


class QueueUnknown(OrderedError, ValueError):
    """Raised for a queue number that the topic does not have, or for no number if the topic has several queues."""


class QueueBlocked(OrderedError):
    """The coordinator's lists of a queue are inconsistent, or older than a store.

    No client sends to or consumes the queue until an operator repairs them.
    """

    def __init__(self, topic: str, unit: str, fault: DocumentFault) -> None:
        super().__init__(
            f"topic {topic} queue {unit} is blocked, because its lists are not valid: {fault}. To free it: {fault.remedy}; mq "
            f"order show {topic} shows its state"
        )
        self.topic = topic
        self.unit = unit


class NoHead(OrderedError):
    """No broker group accepts sends of the queue; `reasons` say why not for each group, and what would resolve it."""

    def __init__(self, topic: str, unit: str, seconds: float, reasons: tuple[str, ...]) -> None:
        super().__init__(
            f"no broker group accepted sends of topic {topic} queue {unit} within {seconds:g} s; it was not stored. "
            f"{'; '.join(reasons)}. See mq order show {topic}"
        )
        self.topic = topic
        self.unit = unit
        self.reasons = reasons


class NotLeader(OrderedError):
    """Another producer of the group is the active sender of the queue, or no producer can be sure now that it is."""

    def __init__(self, topic: str, unit: str, group: str, why: str) -> None:
        super().__init__(
            f"this producer of group {group} does not lead topic {topic} queue {unit}: {why}. Wait with `await "
            "producer.lead(topic, queue)`, or use OrderedOptions(stand_by=True), so that send waits"
        )
        self.topic = topic
        self.unit = unit


class SendTimedOut(OrderedError):
    """A head was there and did not acknowledge in time: the message may be stored, once or more.

    `__cause__` is the last refusal or failure, if there was one.
    """

    def __init__(self, topic: str, queue_id: int, seconds: float, last: BaseException | None) -> None:
        cause = f"last: {last}" if last is not None else "no answer came"
        super().__init__(
            f"topic {topic} queue {queue_id}: not acknowledged within {seconds:g} s, {cause}. It may have been stored: "
            "sending it again can store it twice"
        )
        self.__cause__ = last


class SendGivenUp(OrderedError):
    """A message before this one failed (`__cause__`): this one was given up, too, so that it does not overtake it."""

    def __init__(self, topic: str, queue_id: int, cause: BaseException) -> None:
        super().__init__(
            f"topic {topic} queue {queue_id}: not sent because an earlier message failed; send both again in order. The "
            f"earlier failure: {cause}"
        )
        self.__cause__ = cause


class TooMuchWaits(OrderedError):
    """The messages that wait for an acknowledgement reach the limit of the options: nothing of this message was sent."""

    def __init__(self, topic: str, queue_id: int, messages: int, size_bytes: int) -> None:
        super().__init__(
            f"topic {topic} queue {queue_id}: {messages} messages of {size_bytes} bytes are already waiting; wait for earlier "
            "sends, or raise waiting_messages and waiting_bytes of OrderedOptions"
        )
