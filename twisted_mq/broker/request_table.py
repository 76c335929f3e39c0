"""Maps requests to the processors that answer them, and gives each processor the parts of the broker that it works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import attrs

from twisted_mq.access.guard import Guard
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.ha.slave_refusals import refuse_on_slave
from twisted_mq.broker.named_records import NamedRecords
from twisted_mq.broker.processors import commit_columns, send_columns
from twisted_mq.broker.processors.admin_absent_parts import AdminAbsentPartsProcessor
from twisted_mq.broker.processors.admin_cleaning import AdminCleaningProcessor
from twisted_mq.broker.processors.admin_clients import AdminClientsProcessor
from twisted_mq.broker.processors.admin_cold_data import AdminColdDataProcessor
from twisted_mq.broker.processors.admin_config import AdminConfigProcessor
from twisted_mq.broker.processors.admin_consumers import AdminConsumersProcessor
from twisted_mq.broker.processors.admin_lists import AdminListsProcessor
from twisted_mq.broker.processors.admin_offsets import AdminOffsetsProcessor
from twisted_mq.broker.processors.admin_static_topics import AdminStaticTopicsProcessor
from twisted_mq.broker.processors.admin_topics import AdminTopicsProcessor
from twisted_mq.broker.processors.client_manage import ClientManageProcessor
from twisted_mq.broker.processors.commit_columns import CommitColumns
from twisted_mq.broker.processors.consumer_manage import ConsumerManageProcessor
from twisted_mq.broker.processors.end_transaction import EndTransactionProcessor
from twisted_mq.broker.processors.mapped_requests import MappedRequests
from twisted_mq.broker.processors.pop import PopMessageProcessor
from twisted_mq.broker.processors.pop_ack import AckMessageProcessor
from twisted_mq.broker.processors.pop_invisible_time import ChangeInvisibleTimeProcessor
from twisted_mq.broker.processors.pop_notification import NotificationProcessor
from twisted_mq.broker.processors.pop_peek import PeekMessageProcessor
from twisted_mq.broker.processors.pull import PullMessageProcessor
from twisted_mq.broker.processors.query_assignment import QueryAssignmentProcessor
from twisted_mq.broker.processors.query_messages import QueryMessagesProcessor
from twisted_mq.broker.processors.recall import RecallMessageProcessor
from twisted_mq.broker.processors.replication import ReplicationProcessor
from twisted_mq.broker.processors.reply import ReplyMessageProcessor
from twisted_mq.broker.processors.runtime_info import BrokerStatsProcessor, RuntimeInfoProcessor
from twisted_mq.broker.processors.send import SendAnswers, SendMessageProcessor
from twisted_mq.broker.processors.send_back import SendBackProcessor
from twisted_mq.broker.processors.send_checks import SendChecks
from twisted_mq.broker.processors.send_columns import SendColumns
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.shapes import Shapes
from twisted_mq.remoting.channel import Processor, StreakProcessors


class RequestProcessor(Protocol):
    """Answers the requests of some codes."""

    @property
    def processors(self) -> Mapping[RequestCode, Processor]: ...


@attrs.frozen
class ServedRequests:
    """The requests that a broker serves: processors by code, each with its checks before it, and what takes many at a time.

    `columns` takes the sends of `streaks`. A slave has neither.
    """

    processors: dict[int, Processor]
    columns: SendColumns | None
    streaks: StreakProcessors | None


def served_requests(broker: BrokerController) -> ServedRequests:
    """Return what a broker serves. The broker is complete."""
    options, access, static = broker.options, broker.access, broker.static_topics
    checks = SendChecks(options, broker.wall_ms, broker.topics, broker.advertised_ip, broker.known)
    answers = SendAnswers(broker.store_host, options.region_id, trace_on=options.trace_on)
    guard = Guard(access.checks, access.strict)
    columns = SendColumns(broker, checks, answers, guard)

    def choose() -> None:
        columns.may_take = not static.topics

    choose()
    static.on_change.append(choose)
    table = _request_table(broker, checks, answers, guard)
    if broker.is_slave:
        return ServedRequests(table, None, None)
    sends, commits = dict.fromkeys(send_columns.VARYING, columns.take), CommitColumns(broker, guard)
    takes = {**sends, **dict.fromkeys(commit_columns.VARYING, commits.take)}
    return ServedRequests(
        table, columns, StreakProcessors(Shapes({**send_columns.VARYING, **commit_columns.VARYING}), takes)
    )


def together(*tables: Mapping[RequestCode, Processor]) -> dict[int, Processor]:
    """Return one table, by the codes as frames have them. Raises ValueError for a request that two of the tables serve."""
    served: dict[int, Processor] = {}
    for code, processor in (entry for table in tables for entry in table.items()):
        if int(code) in served:
            raise ValueError(f"{code.name} is served twice")
        served[int(code)] = processor
    return served


def _request_table(
    broker: BrokerController, checks: SendChecks, answers: SendAnswers, guard: Guard
) -> dict[int, Processor]:
    table = together(*(one.processors for one in _processors(broker, checks, answers)), broker.access.processors)
    table = broker.statistics.creations.timed(table, broker.clock.seconds)
    if broker.is_slave:
        ordered, ha = broker.topics.is_ordered, broker.ha
        refuse_on_slave(table, broker.options, ordered, lambda: broker.acts_as_master, lambda: ha.log_differs)
    mapped, static = MappedRequests(broker), broker.static_topics

    def now() -> dict[int, Processor]:
        """Return the processors. While no topic is static, requests are not checked for static topics."""
        served = guard.before(mapped.before(table) if static.topics else table)
        times = broker.statistics.request_times
        return served if times is None else times.of(served)

    served = now()
    static.on_change.append(lambda: served.update(now()))
    return served


def _processors(broker: BrokerController, checks: SendChecks, answers: SendAnswers) -> Iterator[RequestProcessor]:
    records = NamedRecords(broker)
    yield SendMessageProcessor(broker, checks, answers)
    yield SendBackProcessor(broker, records)
    yield RecallMessageProcessor(broker)
    yield EndTransactionProcessor(broker)
    yield ReplyMessageProcessor(broker, checks, answers)
    yield PullMessageProcessor(broker)
    yield PopMessageProcessor(broker, broker.pop.reader)
    yield AckMessageProcessor(broker, broker.pop)
    yield ChangeInvisibleTimeProcessor(broker, broker.pop)
    yield NotificationProcessor(broker, broker.pop.orders)
    yield PeekMessageProcessor(broker)
    yield ClientManageProcessor(broker)
    yield ConsumerManageProcessor(broker)
    yield QueryAssignmentProcessor(broker)
    yield AdminTopicsProcessor(broker)
    yield AdminStaticTopicsProcessor(broker)
    yield AdminListsProcessor(broker)
    yield AdminConsumersProcessor(broker)
    yield AdminClientsProcessor(broker, records)
    yield AdminOffsetsProcessor(broker)
    yield AdminConfigProcessor(broker)
    yield AdminAbsentPartsProcessor()
    yield AdminColdDataProcessor(broker)
    yield AdminCleaningProcessor(broker)
    yield BrokerStatsProcessor(broker)
    yield QueryMessagesProcessor(broker, records)
    yield RuntimeInfoProcessor(broker)
    yield ReplicationProcessor(broker)
