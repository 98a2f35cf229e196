"""Growth: small produces to 1 and to 1,000 partitions, 32 connections with 5 in flight each.

With 1,000 partitions each connection first keeps to one of its own, as the budget has it. In the
harder case every request goes to the next of the 1,000: nothing that is remembered of the last
request helps, and no two batches of a turn share a write, so the price of a system call for each
is in it. The cases take turns, so that their ratio is of the same minute.
"""

from benchmarks.session import Session, raw

TOPICS = {"one": 1, "thousand": 1000}
CASES = (
    ("partitions-1", "1 partition", "one", {}),
    ("partitions-1000", "1,000 partitions", "thousand", {"P": 1000, "K": 1}),
    ("partitions-1000-in-turn", "1,000 partitions in turn", "thousand", {"P": 1000}),
)


def run(session: Session) -> None:
    peers, seconds = session.peers(), session.options.seconds
    for peer in peers:
        for topic, partitions in TOPICS.items():
            peer.create_topic(topic, partitions)
    for _ in range(session.options.rounds):
        for peer in peers:
            for name, title, topic, options in CASES:
                one = raw(peer, topic, seconds, c=32, d=5, **options)
                session.note((name, title, "requests_per_s"), peer.name, one)
    for peer in peers:
        for topic in TOPICS:
            peer.delete_topic(topic)
