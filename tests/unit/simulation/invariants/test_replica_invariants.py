"""Each promise of replication is broken on purpose, and the break is named."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from ottla.broker.node import inspection
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.model.types import NodeId, TopicPartition
from ottla.simulation.history.history import Trim, Violation
from ottla.simulation.invariants.replica_invariants import (
    Known,
    ReplicaInvariants,
    _follow,
    _mark_before,
)
from ottla.simulation.runs.run import World, simulate
from ottla.simulation.runs.running import Failure
from tests.unit.simulation.small import small_cluster

PLACE = TopicPartition("topic-0", 0)
Harm = Callable[[World], None]


def known(world: World) -> Known:
    """Of a partition that has something committed."""
    world.replica_invariants.check()
    return max(world.replica_invariants._known.values(), key=lambda one: one.committed_end)


def led(world: World) -> ReplicatedPartition:
    name = known(world).name
    return next(
        one
        for _, broker in world.nodes.serving()
        for one in broker.partitions.all()
        if one.name == name and isinstance(one, ReplicatedPartition) and one.leader is not None
    )


def watermark_past_the_end(world: World) -> None:
    led(world).high_watermark += 1000


def watermark_back(world: World) -> None:
    led(world).high_watermark -= 1


def begins_later(world: World) -> None:
    led(world).log.log_start_offset = 1


def two_leaders(world: World) -> None:
    known(world).leaders[led(world).leader_epoch] = NodeId(9)


def follower_without_records(world: World) -> None:
    leader = led(world)
    follower = next(
        one
        for _, broker in world.nodes.serving()
        for one in broker.partitions.all()
        if one.name == leader.name and one is not leader
    )
    follower.log.truncate_to(0)
    follower.high_watermark = 0


def other_bytes(world: World) -> None:
    one = known(world)
    one.marks = dict.fromkeys(one.marks, 7)
    for replica in one.replicas.values():
        replica.chain.links.clear()
        replica.tip = (-1, -1)


def twice(world: World) -> None:
    """As if the last batch were the first one, sent once more."""
    chain = known(world).replicas[NodeId(1)].chain
    assert len(chain.links) > 1
    chain.links[-1] = chain.links[-1]._replace(batch=chain.links[0].batch)
    known(world).replicas[NodeId(1)].tip = (-1, -1)
    chain.follow = lambda *_: []  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (watermark_past_the_end, "I1"),
        (watermark_back, "I1"),
        (follower_without_records, "I2"),
        (two_leaders, "I3"),
        (other_bytes, "I4"),
        (begins_later, "I6"),
        (twice, "I7"),
    ],
)
def test_a_broken_promise_is_named(
    harm: Harm, named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    audit = World._audit

    async def harm_and_look(world: World) -> None:
        harm(world)
        world.replica_invariants.check()
        await audit(world)

    monkeypatch.setattr(World, "_audit", harm_and_look)
    with pytest.raises(Failure, match=named):
        simulate(5, small_cluster(5))


def check_start(
    trims: dict[TopicPartition, Trim], retention_bytes: int | None, *, start: int, size: int
) -> None:
    nodes = SimpleNamespace(is_one=True)
    invariants = ReplicaInvariants(nodes, None, trims, retention_bytes)  # type: ignore[arg-type]
    view = SimpleNamespace(name=PLACE, log_start_offset=start, size_bytes=size)
    invariants._check_start(view)  # type: ignore[arg-type]


def test_a_log_keeps_its_beginning_unless_records_are_deleted() -> None:
    with pytest.raises(Violation, match="begins at 3"):
        check_start({PLACE: Trim()}, None, start=3, size=0)
    check_start({PLACE: Trim(asked=3)}, None, start=3, size=0)


def test_deleted_records_do_not_come_back() -> None:
    with pytest.raises(Violation, match="deleted up to 4, and begins at 3"):
        check_start({PLACE: Trim(asked=4, done=4)}, None, start=3, size=0)


def test_retention_leaves_as_much_as_it_says() -> None:
    trims = {PLACE: Trim()}
    check_start(trims, 1000, start=3, size=1000)
    assert trims[PLACE].start_max == 3
    with pytest.raises(Violation, match="999 bytes left"):
        check_start(trims, 1000, start=4, size=999)


def test_what_a_leader_committed_in_the_turn_in_which_its_disk_failed_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other partitions of the disk may fail after the fetches of this one were answered."""
    machine = SimpleNamespace(latest=object())
    nodes = SimpleNamespace(at=lambda _: machine)
    invariants = ReplicaInvariants(nodes, None, {}, None)  # type: ignore[arg-type]
    view = SimpleNamespace(name=PLACE, is_leader=True, high_watermark=55)
    hosted = [view]
    monkeypatch.setattr(inspection, "partitions", lambda _: hosted)
    invariants.note_sending("node-1")
    assert invariants.committed_end(PLACE) == 55
    view.high_watermark, view.is_leader = 56, False
    hosted.clear()
    invariants.note_sending("node-1")
    assert invariants.committed_end(PLACE) == 56
    view.high_watermark = 57
    invariants.note_sending("node-1")
    assert invariants.committed_end(PLACE) == 56, "it has not led since"


def test_after_an_unclean_election_only_its_leader_says_what_is_committed() -> None:
    invariants = ReplicaInvariants(SimpleNamespace(), SimpleNamespace(), {}, None)  # type: ignore[arg-type]
    key = (b"t" * 16, 0)
    one = invariants._known[key] = Known(PLACE, committed_end=5, committed={4: 1})
    invariants._nodes.machines = {NodeId(1): SimpleNamespace(starts=1)}  # type: ignore[dict-item]
    one.replicas[NodeId(1)] = SimpleNamespace(chain=SimpleNamespace(links=[]))  # type: ignore[assignment]
    invariants.elected_uncleanly(key, 3)
    assert (one.committed_end, one.committed) == (0, {})
    for epoch, end in ((2, 0), (3, 5)):
        view = SimpleNamespace(leader_epoch=epoch, high_watermark=5)
        invariants._check_leader(one, NodeId(1), view)  # type: ignore[arg-type]
        assert one.committed_end == end


def test_the_beginning_of_a_log_from_before_an_unclean_election_is_not_known() -> None:
    one = Known(PLACE, committed={4: 7}, unclean_epoch=3)
    for epoch, mark in ((2, None), (3, 7)):
        batch = SimpleNamespace(base_offset=5, leader_epoch=epoch)
        view = SimpleNamespace(log_start_offset=5, end_offset=6, batches=_batches_of(batch))
        assert _mark_before(one, view) == mark  # type: ignore[arg-type]


def test_a_log_truncated_below_its_start_is_followed_from_its_new_start() -> None:
    """An unclean election left a shorter log; before it, records had been deleted up to 5."""
    one, log = Known(PLACE, committed={4: 7}), SimpleLog()
    batch = SimpleNamespace(
        base_offset=5, last_offset=5, leader_epoch=1, crc=1, producer_id=-1, producer_epoch=-1
    )
    batch.base_sequence = -1
    view = SimpleNamespace(log_identity=log, log_start_offset=5, end_offset=6, last_epoch=1)
    view.batches = _batches_of(batch)
    _follow(one, NodeId(1), view)  # type: ignore[arg-type]
    assert one.replicas[NodeId(1)].chain.start == 5
    one.unclean_epoch, one.committed = 2, {0: 8}
    view.log_start_offset = view.end_offset = 1
    view.batches = lambda *_: iter([])
    _follow(one, NodeId(1), view)  # type: ignore[arg-type]
    assert one.replicas == {}  # Nobody has seen what lay before offset 1.
    batch.base_offset, batch.last_offset, batch.leader_epoch = 1, 5, 2
    view.end_offset, view.last_epoch, view.batches = 6, 2, _batches_of(batch)
    _follow(one, NodeId(1), view)  # type: ignore[arg-type]
    assert one.replicas[NodeId(1)].chain.start == 1


class SimpleLog:
    """What a replica's log is known by."""


def _batches_of(batch: object) -> Callable[..., Iterator[object]]:
    return lambda *_: iter([batch])
