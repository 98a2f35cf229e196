"""Idle connections: what 1,000 and 10,000 of them cost in memory, and in speed of the others."""

import resource
import socket
import struct
import time
from contextlib import ExitStack

from benchmarks.peers import Peer
from benchmarks.results import MB
from benchmarks.session import Session, raw

COUNTS = (1000, 10_000)
SPARE_DESCRIPTORS = 200
CHUNK = 250  # Connections made at once: fewer than any backlog.
TOPIC = "idle"
# ApiVersions 0 without a client id: what any client says first.
HELLO = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def run(session: Session) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    counts = [count for count in COUNTS if count + SPARE_DESCRIPTORS <= hard]
    if len(counts) < len(COUNTS):
        session.console.print(f"Only {hard} descriptors are allowed: fewer connections.")
    for kind in session.kinds():
        peer = session.new_peer(kind)
        peer.start()
        try:
            peer.create_topic(TOPIC, 1)
            raw(peer, TOPIC, session.options.warm_seconds / 2, c=32, d=5)
            _memory(session, peer, counts)
            _speed(session, peer, counts[0])
        finally:
            peer.stop()


def _memory(session: Session, peer: Peer, counts: list[int]) -> None:
    with ExitStack() as opened:
        before, held = peer.process.resident_bytes(), 0
        for count in counts:
            connect(opened, peer.port, count - held)
            held = count
            time.sleep(1)
            cpu = peer.process.cpu_seconds()
            time.sleep(session.options.seconds)
            one = {
                "added_mb": (peer.process.resident_bytes() - before) / MB,
                "cpu_cores": (peer.process.cpu_seconds() - cpu) / session.options.seconds,
            }
            case = (f"idle-{count}", f"{count:,} idle connections", "added_mb")
            session.note(case, peer.name, one)
    time.sleep(1)


def _speed(session: Session, peer: Peer, count: int) -> None:
    for _ in range(session.options.rounds):
        for held in (0, count):
            with ExitStack() as opened:
                connect(opened, peer.port, held)
                one = raw(peer, TOPIC, session.options.seconds, c=32, d=5)
            case = (f"beside-{held}", f"100 B, 32 x 5, beside {held:,} idle", "requests_per_s")
            session.note(case, peer.name, one)


def connect(opened: ExitStack, port: int, count: int) -> None:
    """Open so many connections and let each say hello, as a client would."""
    for start in range(0, count, CHUNK):
        made = []
        for _ in range(min(CHUNK, count - start)):
            one = opened.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            one.sendall(HELLO)
            made.append(one)
        for one in made:
            assert one.recv(4), "the broker answers everyone"
