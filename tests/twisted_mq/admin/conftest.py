from tests.support.faces import cluster, group

__all__ = ["cluster", "group"]
