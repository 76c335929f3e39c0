"""Errors of reading from and writing to brokers: each has the address, and the machine that asked."""

from __future__ import annotations

from twisted_mq.spark.errors import StoreReadError


class LiveError(StoreReadError):
    """Base class of all errors about brokers and name servers."""

    def __reduce__(self) -> tuple[object, ...]:
        return LiveError, (str(self),)


class PeerSilent(LiveError):
    """Raised when a peer does not answer: no connection, a lost one, or no answer in time."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class NameServersSilent(LiveError):
    """Raised when no name server answers."""

    def __init__(self, failures: list[str], host: str) -> None:
        super().__init__(f"no name server answers, asked from {host}: {'; '.join(failures)}")


class BrokerSilent(LiveError):
    """Raised when no broker of this name answers, or no name server knows one any more."""

    def __init__(self, broker_name: str, failures: list[str], host: str) -> None:
        known = "; ".join(failures) or "no name server knows an address of it"
        super().__init__(f"broker {broker_name} is not reached from {host}: {known}")
        self.broker_name = broker_name


class TopicUnknown(LiveError):
    """Raised when no name server has a route for the topic."""

    def __init__(self, topic: str, name_servers: tuple[str, ...]) -> None:
        super().__init__(f"topic {topic!r} does not exist at {', '.join(name_servers)}")
        self.topic = topic


class RequestRefused(LiveError):
    """Raised when a broker refuses a request."""

    def __init__(self, address: str, what: str, code: int, remark: str, host: str) -> None:
        super().__init__(f"{address} refuses {what}, asked from {host}: code {code}, {remark or 'no remark'}")
        self.code = code


class OffsetsLost(LiveError):
    """Raised when requested messages are no longer there."""

    def __init__(self, queue: str, wanted: int, found: int, why: str) -> None:
        super().__init__(
            f"{queue}: offset {wanted} was requested, the first one is {found}: {why}; "
            "with failOnDataLoss=false the query continues from there"
        )


class QueueChanged(LiveError):
    """Raised when a queue has another message at the offset of the last one that was read: its broker has another store."""

    def __init__(self, queue: str, offset: int) -> None:
        super().__init__(
            f"{queue}: the message at offset {offset} is not the one that was read: the topic was created again, or the broker "
            "has another or an older store; with failOnDataLoss=false the queue is read from its first message again"
        )


class Behind(PeerSilent):
    """Raised when a broker does not have messages that another one of its name has: a slave that lags, a master that lost
    them."""

    def __init__(self, address: str, queue: str, wanted: int, end: int) -> None:
        super().__init__(address, f"has {queue} up to offset {end}, {wanted} is wanted")
        self.end = end


class QueuesGone(LiveError):
    """Raised when queues that a stream reads have no broker any more."""

    def __init__(self, queues: list[str]) -> None:
        super().__init__(
            f"no broker has these queues any more: {'; '.join(queues)}; start the query again when they are back, or with "
            "failOnDataLoss=false to read the others now"
        )
