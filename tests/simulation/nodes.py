"""Name servers and brokers: the real services on hosts of the world, and faults of their machines."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime

from tests.simulation.disk import Disk
from tests.simulation.world import World
from twisted_mq.broker.machine import Machine
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.ordering.agent import OrderAgent
from twisted_mq.broker.schedule import waiting_messages
from twisted_mq.broker.service import BrokerService
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import NamesrvService
from twisted_mq.storage.timer.timer_files import TimerFiles
from twisted_mq.testing.virtual_network import VirtualHost

NAMESRV_PORT = 9876
BROKER_PORT = 10911

SMALL_STORE: dict[str, Any] = {
    "mapped_file_size_commit_log": 64 << 10,
    "mapped_file_size_consume_queue": 20 * 200,
    "max_hash_slot_num": 64,
    "max_index_num": 256,
    "message_index_enable": False,
    "timer_wheel_enable": False,
    "mapped_file_size_timer_log": 52 * 100,
    "revive_queue_num": 1,
    "file_reserved_time": 1_000_000,
    "default_topic_queue_nums": 2,
    "clean_resource_interval": 5_000,
    "sync_broker_member_group_period": 5_000,
    "disk_max_used_space_ratio": 95,
}
"""Settings for small files and short starts of a broker; files do not expire while time is virtual."""


TIMER_SLOTS = 2 * 600
"""The number of slots of a timer's wheel, a second each. The 14 days of the real wheel take 11 MB at each start."""


def small_timer(options: BrokerOptions) -> TimerFiles:
    """In place of the timer's files."""
    root, precision = options.store_path_root_dir, options.timer_precision_ms
    return TimerFiles(root, precision, options.mapped_file_size_timer_log, TIMER_SLOTS)


waiting_messages.timer_files = small_timer


class Node:
    """A service on a host. `start` also starts it again after `stop`, `kill` or `cut_power`."""

    service: Any

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.host: VirtualHost = world.boot(name)
        self.is_running = False
        self.dark_since = float("-inf")
        """When its power was cut last."""
        self.started_at = float("-inf")

    def start(self) -> None:
        self.host = self.world.boot(self.name)
        self._begin()
        self.is_running = True
        self.started_at = self.world.seconds
        self.world.told("start", host=self.name)

    def _begin(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """SIGKILL: what was written stays, to files and to sockets."""
        self.world.told("kill", host=self.name)
        self.host.kill()
        self._gone()

    def cut_power(self) -> None:
        """The machine goes dark: only what was synced is sure to stay."""
        self.world.told("power-cut", host=self.name)
        self.dark_since = self.world.seconds
        self.host.vanish()
        self._lose()
        self._gone()

    def _gone(self) -> None:
        self.is_running = False
        self.world.threads[self.name].kill()

    def _lose(self) -> None:
        """A node without a disk loses nothing."""

    def stop(self, seconds: float = 30.0) -> None:
        """SIGTERM, and the process's end."""
        self.world.told("stop", host=self.name)
        stopped = self.service.stopService()
        waited = 0.0
        while not stopped.called and waited < seconds:
            self.world.run(0.25)
            waited += 0.25
        self.host.kill()
        self._gone()


class NameServerNode(Node):
    """`options` are those of every start."""

    service: NamesrvService

    def __init__(self, world: World, name: str, **options: Any) -> None:
        super().__init__(world, name)
        self._options = options

    @property
    def address(self) -> str:
        return f"{self.name}:{NAMESRV_PORT}"

    def knows(self, broker: BrokerNode) -> bool:
        """Return whether the broker is registered, a master with all of its topics as it shows them now."""
        address = f"{broker.name}:{BROKER_PORT}"
        if not any(key.address == address for key in self.service.routes.live):
            return False
        return broker.is_slave or all(self._permission(broker, topic) == perm for topic, perm in broker.shown().items())

    def _permission(self, broker: BrokerNode, topic: str) -> int | None:
        queues = self.service.routes.topics.get(topic, {}).get(broker.broker_name)
        return None if queues is None else queues.perm

    def _begin(self) -> None:
        options = NamesrvOptions(
            bind_address=self.name,
            listen_port=NAMESRV_PORT,
            kv_config_path=str(self.world.disk(self.name).root / "kvConfig.json"),
            **self._options,
        )
        self.service = NamesrvService(options, self.host, bind=self.host.bind)
        self.service.startService()


class BrokerNode(Node):
    """`options` are those of every start."""

    service: BrokerService

    def __init__(self, world: World, name: str, **options: Any) -> None:
        super().__init__(world, name)
        self.options = SMALL_STORE | {"bind_address": name, "broker_ip1": name} | options
        self.disk: Disk = world.disk(name)
        self.has_copy = False
        """True if the next start finds a copy of another broker's store."""
        self.may_lack_topics = False
        """True if it ever had a copy: a kill may remove topics that its operator has just created."""
        self.coordinator: Callable[[VirtualHost], ICoordinator] | None = None
        """Function that creates its client of the coordinator, if it has ordered topics."""
        self._seeds = random.Random(world.random.getrandbits(32))

    @property
    def broker_name(self) -> str:
        return str(self.options["broker_name"])

    @property
    def is_slave(self) -> bool:
        return bool(self.options.get("broker_id", 0))

    @property
    def is_sync_flush(self) -> bool:
        return self.options.get("flush_disk_type") == "SYNC_FLUSH"

    @property
    def is_sync_master(self) -> bool:
        """Return True if acknowledged messages are in its slave's log too."""
        return self.options.get("broker_role") == "SYNC_MASTER"

    @property
    def agent(self) -> OrderAgent | None:
        """Return the agent of the running service, or None."""
        return self.service._order.agent if self.is_running else None

    def shown(self) -> dict[str, int]:
        """Return the permission of each topic, as name servers are told it."""
        registration = self.service.registration
        configs, routes = list(registration.topics.topics.values()), registration.ordering.routes
        return {one.topic_name: one.perm for one in (configs if routes is None else routes.shown(configs))}

    @property
    def store(self) -> Any:
        """The open store of the running service."""
        return self.service.controller.store

    def _begin(self) -> None:
        threads = self.world.threads[self.name]
        self.disk.threads = threads
        machine = Machine(
            bind=self.host.bind,
            threads=threads,
            monotonic=self.host.boot_seconds,
            random=random.Random(self._seeds.getrandbits(32)),
            process_id=lambda: 4711,
            coordinator=self._connect if self.coordinator is not None else None,
        )
        options = BrokerOptions(store_path_root_dir=str(self.disk.root), **self.options)
        self.service = BrokerService(options, self.host, machine)
        self.service.startService()

    def _connect(self, options: BrokerOptions, reactor: IReactorTime) -> ICoordinator:
        assert self.coordinator is not None
        return self.coordinator(self.host)

    def _lose(self) -> None:
        self.disk.cut_power()

    def _gone(self) -> None:
        super()._gone()
        self.free_lock()

    def free_lock(self) -> None:
        """As the system does for a process that ends."""
        self.store._directory.close(clean=False)

    def wipe(self) -> None:
        """Give a broker that does not run an empty disk."""
        assert not self.is_running
        self.world.told("wipe", host=self.name)
        self.disk.wipe()

    def take_store_of(self, other: BrokerNode) -> None:
        """Have a copy of another broker's store, neither of them running."""
        assert not self.is_running and not other.is_running
        self.world.told("copy-store", host=self.name, of=other.name)
        self.has_copy = self.may_lack_topics = True
        self.disk.wipe()
        shutil.copytree(other.disk.root, self.disk.root, dirs_exist_ok=True)
        self.disk.watch()
