"""Numbers of ZooKeeper's protocol: requests (ZooDefs.OpCode), errors (KeeperException.Code), reserved request ids."""

from __future__ import annotations

import enum


class RequestCode(enum.IntEnum):
    """The codes of requests."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    AUTH = 100
    CLOSE_SESSION = -11


class ErrorCode(enum.IntEnum):
    """The results of requests."""

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    QUOTA_EXCEEDED = -125


EVENT_XID = -1
"""Stands where an answer has its request's id: the server tells of a watch."""

NO_TRANSACTION = -1
"""The transaction of an event."""

CONNECTED_STATE = 3
"""The only state of a session that events of this server carry (KeeperState.SyncConnected)."""

EPHEMERAL_FLAG = 1
SEQUENTIAL_FLAG = 2
"""CreateMode: these two and their sum; above are containers and nodes with a time to live."""
