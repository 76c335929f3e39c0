"""Creates persistent nodes together with their parents."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.coordination.interfaces import Conflict, Create, ICoordinator


async def make_paths(coordinator: ICoordinator, paths: Sequence[str]) -> None:
    """Create these nodes and their missing parents, empty. Others may do the same at once. Fails as `commit`."""
    for path in paths:
        parts = path.split("/")
        for count in range(2, len(parts) + 1):
            await _make("/".join(parts[:count]), coordinator)


async def _make(path: str, coordinator: ICoordinator) -> None:
    if await coordinator.read(path) is None:
        try:
            await coordinator.commit([Create(path)])
        except Conflict:
            if await coordinator.read(path) is None:
                raise
