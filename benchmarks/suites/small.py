"""Small produces: one record of 100 bytes per request, on one and on many connections.

The limits are a server that only frames: on a bare epoll loop, and on the broker's own transport.
"""

from functools import partial

from benchmarks.session import Comparison, Session, raw

SHAPES = ((1, 1), (1, 64), (32, 1), (32, 5))


def run(session: Session) -> None:
    for connections, in_flight in SHAPES:
        session.compare(
            Comparison(
                name=f"small-c{connections}-d{in_flight}",
                title=f"100 B, {connections} x {in_flight}",
                metric="requests_per_s",
                measure=partial(raw, c=connections, d=in_flight),
                limits=("loop_framing", "framing"),
            )
        )
