"""The parts of producers that are the same in each face: arguments, names and counts."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

from twisted_mq.client.core.argument_checks import check_function
from twisted_mq.client.core.client_metrics import ProducerMetrics
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.faces.member import ClientMember, MQClientT
from twisted_mq.client.producing import producer, transaction_producer
from twisted_mq.client.producing.producer_options import ProducerOptions

CheckT = TypeVar("CheckT")


class Producer(ClientMember[MQClientT]):
    """A producer of one group."""

    _core: producer.Producer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        options: ProducerOptions | None = None,
        client: MQClientT | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Take the name servers' addresses (`namesrv`) or an MQClient to share; without both, read NAMESRV_ADDR.

        Nothing is connected before `start`. Raises ClientOptionIllegal for a bad group or address.
        """
        super().__init__(client)
        self._core = producer.Producer(
            self._reactor, group, namesrv, client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip

    @property
    def group(self) -> str:
        """The group's name at the brokers, with its namespace."""
        return self._core.group

    @property
    def metrics(self) -> ProducerMetrics:
        """Counts of messages sent, failed, retried and in flight."""
        return self._core.metrics


class TransactionProducer(Producer[MQClientT], Generic[MQClientT, CheckT]):
    """A producer of half messages."""

    _core: transaction_producer.TransactionProducer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        check: CheckT,
        options: ProducerOptions | None = None,
        client: MQClientT | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Take the arguments of Producer. `check` gets the stored message, and returns its TransactionState."""
        check_function(check, "check", transaction_producer.CHECK_EXAMPLE)
        super(Producer, self).__init__(client)  # the core is another one
        self._core = transaction_producer.TransactionProducer(
            self._reactor, group, namesrv, check=self._wrapped(check), client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip

    @abc.abstractmethod
    def _wrapped(self, check: CheckT) -> transaction_producer.Check:
        """Return a function that calls the user's where it may run."""
