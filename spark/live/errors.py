"""Errors of reading from and writing to brokers: each names the address, and the machine from which it was asked."""

from __future__ import annotations

from twisted_mq.spark.errors import StoreReadError


class LiveError(StoreReadError):
    """Root of all errors about brokers and name servers."""

    def __reduce__(self) -> tuple[object, ...]:
        return LiveError, (str(self),)


class PeerSilent(LiveError):
    """One peer did not answer: no connection, none any more, or nothing in time."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class NameServersSilent(LiveError):
    """None of the name servers answered."""

    def __init__(self, failures: list[str], host: str) -> None:
        super().__init__(f"no name server answers, asked from {host}: {'; '.join(failures)}")


class BrokerSilent(LiveError):
    """No broker of this name answered, or no name server knows one any more."""

    def __init__(self, broker_name: str, failures: list[str], host: str) -> None:
        known = "; ".join(failures) or "no name server knows an address of it"
        super().__init__(f"broker {broker_name} is not reached from {host}: {known}")
        self.broker_name = broker_name


class TopicUnknown(LiveError):
    """No name server has a route for the topic."""

    def __init__(self, topic: str, name_servers: tuple[str, ...]) -> None:
        super().__init__(f"topic {topic!r} does not exist at {', '.join(name_servers)}")
        self.topic = topic


class Refused(LiveError):
    """A broker answered that it will not."""

    def __init__(self, address: str, what: str, code: int, remark: str, host: str) -> None:
        super().__init__(f"{address} refuses {what}, asked from {host}: code {code}, {remark or 'no remark'}")
        self.code = code


class OffsetsLost(LiveError):
    """Messages that were to be read are no longer there."""

    def __init__(self, queue: str, wanted: int, found: int, why: str) -> None:
        super().__init__(
            f"{queue}: offset {wanted} was to be read, the first there is {found}: {why}; "
            "with failOnDataLoss=false the query goes on from there"
        )


class Behind(PeerSilent):
    """A broker has not yet, or not any more, what another one of its name has: a slave that lags, a master that lost it."""

    def __init__(self, address: str, queue: str, wanted: int, end: int) -> None:
        super().__init__(address, f"has {queue} up to offset {end}, {wanted} is wanted")
        self.end = end


class QueuesGone(LiveError):
    """Queues that a stream reads have no broker any more."""

    def __init__(self, queues: list[str]) -> None:
        super().__init__(
            f"no broker has these any more: {'; '.join(queues)}; start the query again when they are back, "
            "or with failOnDataLoss=false to read the others meanwhile"
        )
