"""Resident memory of a fresh broker: idle, and its peak under each kind of load."""

import time
from collections.abc import Callable

from benchmarks.peers import Peer
from benchmarks.results import MB
from benchmarks.session import Session, raw

ROUND_BYTES = 512 << 20
TOPIC = "memory"


def run(session: Session) -> None:
    seconds = session.options.seconds
    loads: dict[str, Callable[[Peer], object]] = {
        "small produces, 32 x 5": lambda peer: raw(peer, TOPIC, seconds, c=32, d=5, P=4),
        "1 MiB batches, 32 x 2": lambda peer: raw(
            peer, TOPIC, seconds, c=32, d=2, s=1000, r=1030, P=4, b=ROUND_BYTES
        ),
        "catch-up, 32 connections": lambda peer: raw(peer, TOPIC, seconds, m="fetch", c=32, P=4),
    }
    for kind in session.kinds():
        peer = session.new_peer(kind)
        peer.start()
        try:
            time.sleep(1)
            _note(session, "idle", peer, peer.process.resident_bytes())
            peer.create_topic(TOPIC, 4)
            for title, load in loads.items():
                peer.process.forget_peak()
                load(peer)
                _note(session, title, peer, peer.process.resident_bytes_peak())
            _note(session, "after the load", peer, peer.process.resident_bytes())
        finally:
            peer.stop()


def _note(session: Session, title: str, peer: Peer, size: int) -> None:
    name = f"memory-{title.partition(',')[0].replace(' ', '-')}"
    session.note((name, title, "resident_mb"), peer.name, {"resident_mb": size / MB})
