"""Groups: commits, time until a hundred members are stable, heartbeats, pauses, loading.

Both brokers run with the same times: new groups wait 100 ms for more members, and heartbeats come
twice a second. Apache Kafka waits up to its default before it assigns anew; so do we.
"""

import asyncio
import time
from collections.abc import Callable

from tests.conformance.crowd import ClassicMember, ConsumerMember, Crowd, Member, crowd

from benchmarks import group_loading, group_pauses
from benchmarks.group_requests import COMMIT_ERROR_AT, beat, commit, error_at, write_frames
from benchmarks.peers import Peer
from benchmarks.session import Session, raw

SETTINGS = {
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.max.size": "2000",
}
KINDS: dict[str, type[Member]] = {"classic": ClassicMember, "consumer": ConsumerMember}
COMMITTING = (1, 16)
STABLE_MEMBERS, STABLE_PARTITIONS = 100, 100
BEATING_MEMBERS = 1000
SETTLE_SECONDS = 3.0
BEATS_PER_S = 1000
BEATING_SECONDS = 4.0
LOADED_COMMITS = 1_000_000
SECONDS_MAX = 60.0
BY_THE_BYTE = ("cpu_s_per_gb", "mb_per_s", "records_per_s")
PAUSE_ROUNDS_MAX = 2


def run(session: Session) -> None:
    peers = [session.new_peer(kind, SETTINGS) for kind in session.kinds()]
    try:
        for peer in peers:
            peer.start()
            peer.create_topic("groups", STABLE_PARTITIONS)
            peer.create_topic("pauses", group_pauses.PARTITIONS)
            _warm_up(session, peer)
        _in_rounds(session, peers, session.options.rounds, _commits)
        _in_rounds(session, peers, session.options.rounds, _stable)
        _in_rounds(session, peers, 1, _heartbeats)
        _in_rounds(session, peers, min(PAUSE_ROUNDS_MAX, session.options.rounds), _pauses)
        _in_rounds(session, peers, 1, _loading)
    finally:
        for peer in peers:
            peer.stop()


def _in_rounds(
    session: Session,
    peers: list[Peer],
    rounds: int,
    measure: Callable[[Session, Peer, str], None],
) -> None:
    """Contenders take turns; each round has groups of its own."""
    for number in range(rounds):
        for peer in peers[number % 2 :] + peers[: number % 2]:
            measure(session, peer, f"{measure.__name__}-{number}")


def _warm_up(session: Session, peer: Peer) -> None:
    """A cold JVM is several times slower than a warm one."""
    ends_at = time.monotonic() + session.options.warm_seconds / 3
    number = 0
    while time.monotonic() < ends_at:
        number += 1
        for name in KINDS:
            asyncio.run(_time_until_stable(peer, name, f"warm-up-{name}-{number}"))
    _commit(session, peer, f"warm-up-{number}", 16, session.options.warm_seconds / 3)


def _commits(session: Session, peer: Peer, name: str) -> None:
    for count in COMMITTING:
        one = _commit(session, peer, f"{name}-{count}", count, session.options.seconds)
        plural = "s" if count > 1 else ""
        case = (f"commits-{count}", f"commits of {count} consumer{plural}", "requests_per_s")
        session.note(case, peer.name, one)


def _commit(
    session: Session, peer: Peer, group: str, count: int, seconds: float
) -> dict[str, float]:
    """Members of one group that commit one partition each, one commit after the other."""

    async def join() -> Crowd:
        made = _crowd(peer, "classic", group, count, STABLE_PARTITIONS)
        await made.connect()
        await made.join()
        await made.until(made.is_stable, SECONDS_MAX)
        await made.close()  # They stay members until their session ends.
        return made

    members = asyncio.run(join()).members
    frames = [commit(group, "groups", [index], one) for index, one in enumerate(members)]
    path = write_frames(session.directory / "commits", frames)
    letters = {"m": "again", "c": count, "F": path, "E": COMMIT_ERROR_AT}
    return _counted(raw(peer, "groups", seconds, **letters))


def _stable(session: Session, peer: Peer, name: str) -> None:
    for kind in KINDS:
        before = peer.process.cpu_seconds()
        seconds = asyncio.run(_time_until_stable(peer, kind, f"{name}-{kind}"))
        case = (f"stable-{kind}", f"{STABLE_MEMBERS} members, {kind}", "stable_s")
        one = {"stable_s": seconds, "cpu_s": peer.process.cpu_seconds() - before}
        session.note(case, peer.name, one)


async def _time_until_stable(peer: Peer, kind: str, group: str) -> float:
    """From the first join to every partition owned once, all members in one epoch."""
    made = _crowd(peer, kind, group, STABLE_MEMBERS, STABLE_PARTITIONS)
    await made.connect()
    began = time.perf_counter()
    await made.join()
    await made.until(made.is_stable, SECONDS_MAX)
    seconds = time.perf_counter() - began
    await made.leave(list(made.members))
    return seconds


def _heartbeats(session: Session, peer: Peer, name: str) -> None:
    """Paced as in life: each member now and then, so that a beat wakes the broker."""
    for kind in KINDS:

        async def join(kind: str = kind) -> Crowd:
            made = _crowd(peer, kind, f"{name}-{kind}", BEATING_MEMBERS, STABLE_PARTITIONS, 2.0)
            await made.connect()
            await made.join()
            epochs: set[int] = set()
            while not made.is_stable() or epochs != {member.epoch for member in made.members}:
                await made.until(made.is_stable, SECONDS_MAX)
                epochs = {member.epoch for member in made.members}
                await asyncio.sleep(
                    SETTLE_SECONDS
                )  # Most own nothing: the last may be yet to come.
            await made.close()
            return made

        members = asyncio.run(join()).members
        path = write_frames(session.directory / "beats", map(beat, members))
        letters = {"m": "again", "c": BEATING_MEMBERS, "R": BEATS_PER_S, "E": error_at(members[0])}
        one = _counted(raw(peer, "groups", BEATING_SECONDS, F=path, **letters))
        case = (
            *(f"heartbeats-{kind}", f"heartbeats of {BEATING_MEMBERS:,} members, {kind}"),
            "cpu_us_per_request",
        )
        session.note(case, peer.name, one)


def _pauses(session: Session, peer: Peer, name: str) -> None:
    for strategy in group_pauses.STRATEGIES:
        found = group_pauses.pauses(peer.bootstrap, f"{name}-{strategy}", "pauses", strategy)
        for what, seconds in found.items():
            case = (f"pause-{strategy}-{what}", f"pause when one {what}s, {strategy}", "pause_s")
            session.note(case, peer.name, {"pause_s": seconds})


def _loading(session: Session, peer: Peer, _name: str) -> None:
    group_loading.fill(peer, "groups", LOADED_COMMITS, session.directory)
    case = ("loading", f"start with {LOADED_COMMITS:,} commits", "load_s")
    session.note(case, peer.name, group_loading.restart(peer))


def _counted(one: dict[str, float]) -> dict[str, float]:
    """Without what goes by the byte: these requests have hardly any."""
    return {name: value for name, value in one.items() if name not in BY_THE_BYTE}


def _crowd(
    peer: Peer,
    kind: str,
    group: str,
    count: int,
    partitions: int,
    heartbeat_seconds: float = 0.5,
) -> Crowd:
    return crowd(
        *(KINDS[kind], peer.bootstrap, group, "groups", count),
        partitions=partitions,
        heartbeat_seconds=heartbeat_seconds,
    )
