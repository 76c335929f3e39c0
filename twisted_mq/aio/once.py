"""Handles a message once, whatever comes again, in tasks of asyncio: the store is asked in a thread.

async with once(seen, message) as fresh:
    if fresh:
        await charge(message)
await message.ack()
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from twisted_mq.client.consuming.seen_keys import HandledElsewhere, Seen, SeenKeys, message_key
from twisted_mq.protocol.messages.message import MessageExt


@contextlib.asynccontextmanager
async def once(
    seen: SeenKeys, message: MessageExt, *, key: Callable[[MessageExt], str] = message_key
) -> AsyncIterator[bool]:
    """Enter with whether the message is to be handled: False for one that was handled before.

    It counts as handled when the block ends, and not when the block raises or is cancelled: then it is handled when it comes
    again. Raises HandledElsewhere while another consumer handles it. The work and the note of it are two steps: after a crash
    between them the message is handled twice, unless the store of `seen` is the database of the work, in one transaction.
    """
    name = key(message)
    known = await asyncio.to_thread(seen.begin, name)
    if known is Seen.BEGUN:
        raise HandledElsewhere(f"message {name} is handled by another consumer now; send it back, it comes again")
    if known is Seen.DONE:
        yield False
        return
    try:
        yield True
    except BaseException:
        await asyncio.shield(asyncio.to_thread(seen.give_up, name))
        raise
    await asyncio.shield(asyncio.to_thread(seen.done, name))
