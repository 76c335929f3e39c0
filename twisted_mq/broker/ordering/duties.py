"""Decides what a broker reports to the coordinator about a unit, from its lists and its own state. Pure.

    | who | sees | tells |
    |---|---|---|
    | the keeper, or a broker of the group | a group in the send list that is not well, or is retired | Lost |
    | a master | its group in the send list before it was seen outside: an earlier process put it there | Lost |
    | master, or slave without master | its group is the consume list's head, takes no sends, and all is consumed | Drained |
    | a master | its group is declared, well, and in neither list | Ready |

The second row is checked first, then the others in their order. If none applies, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.ordering.rules import Drained, Event, Fault, Lost, Ready


@attrs.frozen
class Standpoint:
    """The position of a broker towards a unit. `declared` is True if its group may take the unit's sends; `seen_outside`
    if this session of this process saw its group outside the send list; `has_consumed` if all of a term's messages are
    consumed here.
    """

    group: str
    is_master: bool
    is_keeper: bool
    declared: bool
    seen_outside: bool
    has_consumed: Callable[[Term], bool]


def duty(lists: Lists, who: Standpoint, fault: Fault) -> Event | None:
    """Return the next event to apply; None if there is nothing to report."""
    own = who.group
    if who.is_master and own in lists.send and not who.seen_outside:
        return Lost(own)
    for group in lists.send:
        if (who.is_keeper or group == own) and fault(group) is not None:
            return Lost(group)
    term = lists.consumed
    if term is not None and term.group == own and lists.head != own and who.has_consumed(term):
        return Drained(*attrs.astuple(term))
    ready = who.is_master and who.declared and own not in lists.send and not lists.has_backlog(own)
    return Ready(own) if ready and fault(own) is None else None
