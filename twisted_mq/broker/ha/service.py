"""Replicates a broker: its slaves and the sends that wait for them, or the link to a slave's master (Apache:
DefaultHAService).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet import defer, interfaces

from twisted_mq.broker.ha.accept_service import AcceptSocketService
from twisted_mq.broker.ha.client import HAClient
from twisted_mq.broker.ha.connection import HAConnection
from twisted_mq.broker.ha.group_transfer import GroupTransferService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.bodies import HAClientRuntimeInfo, HAConnectionRuntimeInfo, HARuntimeInfo
from twisted_mq.protocol.layouts.ha import ConnectionState
from twisted_mq.remoting.channel import Channel
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.storage.interfaces import IMessageStore


class HAService:
    """The replication of one broker.

    `accept` is the factory for the HA port. `client` is None on a master. `address` is the address that slaves get.
    """

    def __init__(
        self,
        options: BrokerOptions,
        store: IMessageStore,
        clock: interfaces.IReactorTime,
        late: LateAnswers,
        address: str = "",
        rotation: Rotation | None = None,
    ) -> None:
        self.client: HAClient | None = None
        self.address = address
        self.on_replicated: list[Callable[[], object]] = []
        """Called when a slave has acknowledged something or has disconnected, before sends are answered."""
        self.accept = AcceptSocketService(options, store, clock, self._changed, rotation or Rotation(clock))
        self.transfers = GroupTransferService(clock, options.slave_timeout / 1000)
        self.ordered_transfers = GroupTransferService(clock, options.slave_timeout / 1000)
        """The waiting sends of ordered messages. They wait for a slave that confirms this master's session."""
        self.master_session: Callable[[], int] = lambda: 0
        """Returns this master's session with the coordinator, 0 without a session."""
        self.group_changed: Callable[[], object] = lambda: None
        """Has a slave ask the name servers at once who is in its group."""
        self._options = options
        self._store = store
        self._late = late

    def follow(self, client: HAClient) -> None:
        """Make this broker a slave that follows its master through that client."""
        self.client = client

    def told_master(self, address: str, channel: Channel) -> bool:
        """Follow a master that names itself, if none is known and it is where it says. Return whether it is followed."""
        client = self.client
        if client is None or client.master_ha_address not in (None, address):
            return False
        if address.rpartition(":")[0] != channel.address.rpartition(":")[0]:
            return False
        client.update_master_ha_address(address)
        return True

    @property
    def log_differs(self) -> bool:
        """True on a slave whose log is not its master's."""
        return self.client is not None and self.client.differs

    @property
    def waits_for_slaves(self) -> bool:
        """True if sends wait for copies."""
        return self._options.waits_for_slaves

    def replicated(self, offset: int) -> defer.Deferred[bool]:
        """Fire when inSyncReplicas copies hold the log up to `offset` (True), or that took too long (False)."""
        return _wait(self.transfers, offset, self._options.in_sync_replicas, self.accept.acknowledged_offsets())

    def was_replicated(self, offset: int) -> bool:
        """Return whether inSyncReplicas copies were seen to hold the log up to `offset` while a send waited for that."""
        return self.transfers.held(self._options.in_sync_replicas) >= offset

    def replicated_in_session(self, offset: int) -> defer.Deferred[bool]:
        """Like `replicated`, for this broker and at least one slave that confirms this master's present session."""
        copies = max(2, self._options.in_sync_replicas)
        return _wait(self.ordered_transfers, offset, copies, self.confirmed_offsets())

    def confirmed_offsets(self) -> Sequence[int]:
        """Return what each slave that confirms this master's present session has acknowledged."""
        return self.accept.confirmed_offsets(self.master_session())

    def _changed(self) -> None:
        for tell in self.on_replicated:
            tell()
        if self.transfers:
            with self._late.together():
                self.transfers.acknowledged(self.accept.acknowledged_offsets())
        if self.ordered_transfers:
            with self._late.together():
                self.ordered_transfers.acknowledged(self.confirmed_offsets())

    def runtime_info(self) -> HARuntimeInfo:
        """Return the answer to GET_BROKER_HA_STATUS (Apache: DefaultHAService.getRuntimeInfo)."""
        end = self._store.max_physical_offset()
        if self.client is not None:
            return HARuntimeInfo(master=False, ha_client_runtime_info=self._client_info(self.client, end))
        served = [one for one in self.accept.connections if one.state is ConnectionState.TRANSFER]
        slaves = [self._slave_info(one, end) for one in served]
        return HARuntimeInfo(
            master=True,
            master_commit_log_max_offset=end,
            in_sync_slave_nums=sum(one.in_sync for one in slaves),
            ha_connection_info=slaves,
        )

    def _slave_info(self, connection: HAConnection, end: int) -> HAConnectionRuntimeInfo:
        behind = end - connection.slave_ack_offset
        return HAConnectionRuntimeInfo(
            addr=connection.client_address,
            slave_ack_offset=connection.slave_ack_offset,
            diff=behind,
            in_sync=bool(connection.counts) and behind < self._options.ha_max_gap_not_in_sync,
            transferred_byte_in_second=connection.monitor.transferred_byte_in_second,
            transfer_from_where=connection.transfer_from_where,
        )

    @staticmethod
    def _client_info(client: HAClient, end: int) -> HAClientRuntimeInfo:
        return HAClientRuntimeInfo(
            master_addr=client.master_ha_address,
            transferred_byte_in_second=client.monitor.transferred_byte_in_second,
            max_offset=end,
            last_read_timestamp=client.last_read_ms,
            last_write_timestamp=client.last_write_ms,
        )

    def stop(self) -> None:
        """Close all links; sends that still wait are answered as not replicated."""
        if self.client is not None:
            self.client.stop()
        self.accept.close_all()
        self.transfers.stop()
        self.ordered_transfers.stop()


def _wait(transfers: GroupTransferService, offset: int, copies: int, held: Sequence[int]) -> defer.Deferred[bool]:
    """Wait for so many copies. Resolves at once if they exist already: a slave that has everything reports nothing more."""
    enough = sum(one >= offset for one in held) >= copies - 1
    return defer.succeed(True) if enough else transfers.wait(offset, copies)
