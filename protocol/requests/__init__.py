"""The rows of `twisted_mq.protocol.requests.registry`, by the part of RocketMQ that needs them.

The registry names every header and body class: it is loaded when its table is first used.
"""

from typing import TYPE_CHECKING

from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.protocol.requests.registry import REQUESTS as REQUESTS

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, homes({"twisted_mq.protocol.requests.registry": "REQUESTS"}))
