"""The head of a message on a gRPC stream (gRPC over HTTP/2, "Length-Prefixed-Message").

offset  size  name
0       1     compressed   0, or 1 where the message is encoded as `grpc-encoding` says
1       4     length       of the message that follows
"""

from __future__ import annotations

import construct

from twisted_mq.protocol.layouts.derive import derive_struct

GRPC_FRAME = construct.Struct("compressed" / construct.Int8ub, "length" / construct.Int32ub)

GRPC_HEAD = derive_struct(GRPC_FRAME, "compressed", "length")
