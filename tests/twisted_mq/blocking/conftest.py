from tests.support.faces import cluster, group, ordered_cluster

__all__ = ["cluster", "group", "ordered_cluster"]
