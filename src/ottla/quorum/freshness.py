"""How old this node's knowledge of the cluster is.

A process that was stopped for long cannot feel it, and what it is told when it runs again may have
waited for it. So only what it asked for counts, as of the moment of asking; and where it leads,
only that a majority came back after it was answered.
"""

from ottla.model.types import Monotonic
from ottla.quorum.leadership import Leader
from ottla.quorum.machine import Quorum
from ottla.quorum.roles import Follower


def known_at(quorum: Quorum, now: Monotonic) -> Monotonic | None:
    """All that was committed by then is known to be so; None where that cannot be told."""
    role, known = quorum.role, quorum.high_watermark
    if isinstance(role, Follower):
        return role.known_at
    if isinstance(role, Leader) and known is not None and known > role.epoch_start_offset:
        return role.followed_at(quorum.voters, now)
    return None
