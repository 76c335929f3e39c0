"""Connections that a worker process keeps between tasks, so that not every task connects again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from twisted_mq.spark.live.cluster import Access, Cluster

_MOST_KEPT = 4
_kept: dict[tuple[int, Access], Cluster] = {}
"""Clusters by process and access; a forked process does not use the connections of its parent."""


@contextlib.contextmanager
def kept_cluster(access: Access) -> Iterator[Cluster]:
    """Return a cluster for one task, with the connections of an earlier task. They are closed after an error."""
    key = os.getpid(), access
    cluster = _kept.pop(key, None) or Cluster(access)
    cluster.refresh()
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    _keep(key, cluster)


def _keep(key: tuple[int, Access], cluster: Cluster) -> None:
    """Keep the cluster, and close one that another task of this process kept in between."""
    for old in (_kept.pop(key, None), _kept.pop(next(iter(_kept))) if len(_kept) >= _MOST_KEPT else None):
        if old is not None:
            old.close()
    _kept[key] = cluster
