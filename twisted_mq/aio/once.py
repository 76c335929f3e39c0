"""Handling of a message once, even if it arrives again, for asyncio. The store of keys is called in a thread.

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
    """Yield whether the message is to be handled: False if it was handled before.

    The message counts as handled when the block ends. If the block raises or is cancelled, the message is handled when it
    arrives again. Raises HandledElsewhere while another consumer handles it. The work and the record of it are two steps:
    after a crash between them the message is handled twice, unless the store of `seen` is the work's database and both are
    one transaction.
    """
    name = key(message)
    known = await asyncio.to_thread(seen.begin, name)
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
        await asyncio.shield(asyncio.to_thread(seen.give_up, name))
        raise
    await asyncio.shield(asyncio.to_thread(seen.done, name))
