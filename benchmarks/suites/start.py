"""Start: from the process's start to its first answer to Metadata, and its memory then.

Each start has an empty directory. Ottla formats it within the time; Kafka needs its storage tool
first, which is shown apart and left out of the ratio. Ottla starts once before, unmeasured, so that
Python has compiled what is new.
"""

import time

from benchmarks.peers import Kafka, Ottla
from benchmarks.results import MB
from benchmarks.session import Session

CASE = ("start", "start to first reply", "start_s")
SETTLE_SECONDS = 1.0


def run(session: Session) -> None:
    first = session.new_peer(Ottla)
    first.start()
    first.stop()
    for _ in range(min(3, session.options.rounds)):
        for kind in session.kinds():
            peer = session.new_peer(kind)
            one = {}
            if isinstance(peer, Kafka):
                one["format_s"] = peer.format()
            one["start_s"] = peer.start()
            try:
                time.sleep(SETTLE_SECONDS)
                one["idle_mb"] = peer.process.resident_bytes() / MB
                one["threads"] = peer.process.threads()
            finally:
                peer.stop()
            session.note(CASE, peer.name, one)
