"""Creates the coordinator that a broker's options name, and checks the other options that ordered topics need."""

from __future__ import annotations

from twisted.internet import interfaces

from twisted_mq.broker.options import BrokerOptions, BrokerRole
from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.connect import coordinator_for
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.coordination.settings import CoordinatorSettings

BROKER_IDS = {BrokerRole.SYNC_MASTER: 0, BrokerRole.SLAVE: 1}
"""The ids of the brokers of a group that keeps order."""


def settings_of(options: BrokerOptions) -> CoordinatorSettings:
    """Return the settings. Raises ValueError, whose text is for a person, if the options do not go together."""
    if BROKER_IDS.get(options.broker_role) != options.broker_id:
        raise ValueError(
            "orderCoordinator needs a group of a master with brokerRole=SYNC_MASTER and brokerId=0 and one slave with"
            f" brokerRole=SLAVE and brokerId=1: got brokerRole={options.broker_role} and brokerId={options.broker_id}"
        )
    return CoordinatorSettings(
        parse_address(options.order_coordinator or ""),
        session_seconds=options.order_session_timeout_millis / 1000,
        auth=options.order_coordinator_auth or "",
        ca_file=options.order_coordinator_ca_file or "",
        certificate_file=options.order_coordinator_cert_file or "",
        key_file=options.order_coordinator_key_file or "",
    )


def coordinator_of(options: BrokerOptions, reactor: interfaces.IReactorTime) -> ICoordinator:
    """Return a client, not started. Raises ValueError, MissingExtra."""
    return coordinator_for(settings_of(options), reactor)
