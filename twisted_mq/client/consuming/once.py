"""Handles a message once, however often it comes: around a listener's work, or the body of a loop.

with once(seen, message) as fresh:
    if fresh:
        charge(message)
message.ack()
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from twisted_mq.client.consuming.seen_keys import HandledElsewhere, Seen, SeenKeys, message_key
from twisted_mq.protocol.messages.message import MessageExt


@contextlib.contextmanager
def once(seen: SeenKeys, message: MessageExt, *, key: Callable[[MessageExt], str] = message_key) -> Iterator[bool]:
    """Yield whether the message is to be handled: False if it was handled before.

    It counts as handled when the block ends. If the block raises, it does not, and is handled when it comes again. Raises
    HandledElsewhere while another consumer handles it. The work and its record are two steps: after a crash between them, the
    message is handled twice, unless the store of `seen` is the database of the work, in one transaction.
    """
    name = key(message)
    known = seen.begin(name)
    if known is Seen.BEGUN:
        raise HandledElsewhere(
            f"message {name} is being handled by another consumer; send it back, so that it is delivered again"
        )
    if known is Seen.DONE:
        yield False
        return
    try:
        yield True
    except BaseException:
        seen.give_up(name)
        raise
    seen.done(name)
