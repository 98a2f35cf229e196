"""Many small worlds, each from a seed; and mistakes that they must find."""

from typing import Any

import pytest

from ottla.metadata.decisions.brokers import Died
from ottla.model.types import NodeId
from tests.simulation import worlds
from tests.simulation.worlds import play_for
from tests.unit.replication import mutants
from tests.unit.replication.partition_model import Fetch, Fetched, Model, Node, Plan, Violation

SEEDS = 150
STEPS = 400
CPU_S = 4  # `python -m tests.simulation.worlds replication` plays thousands.


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_nothing_that_was_acknowledged_is_lost(first: int) -> None:
    acked = 0
    for seed in range(first, first + 25):
        model = Model(seed)
        model.run(STEPS)
        model.heal()
        acked += len(model.acked)
    assert acked > 25 * 5  # The worlds are not so bad that nothing happens in them.


def test_worlds_of_every_kind_keep_what_was_acknowledged_and_shown() -> None:
    assert play_for(worlds.replication, CPU_S, at_least=200) >= 200


@pytest.mark.parametrize(
    ("mistake", "stories_max"),
    [
        ({"acks_early": True}, 20),
        ({"shows_all": True}, 20),
        ({"parts": mutants.parts_by_end_offset}, 100),
        ({"parts": mutants.parts_by_epoch}, 100),
        ({"leader": mutants.CountsOnlyItself}, 20),
        ({"leader": mutants.LetsJoinTooEarly}, 40),
        ({"leader": mutants.LetsJoinAtTheHighWatermark}, 300),
        ({"leader": mutants.ForgetsWhatItProposed}, 200),
        ({"leader": mutants.ForgetsBrokerEpochs}, 400),
        ({"leader": mutants.CommitsWhatTooFewHold}, 40),
        ({"follower": mutants.ForgetsToTruncate}, 60),
        ({"follower": mutants.TruncatesToTheHighWatermark}, 100),
        ({"follower": mutants.BelievesLateAnswers}, 100),
        ({"follower": mutants.BelievesTheHighWatermark}, 100),
    ],
    ids=lambda value: "-".join(_name(v) for v in value.items()) if isinstance(value, dict) else "",
)
def test_a_mistake_is_found(mistake: dict[str, Any], stories_max: int) -> None:
    for seed in range(stories_max):
        kinds = Model(seed, **mistake), Model.swarm(seed, **mistake)
        try:
            kinds[seed % 2].run(STEPS)
        except (Violation, AssertionError):
            return
    pytest.fail(f"not found in {stories_max} stories")


@pytest.mark.parametrize("takes_newer_epochs", [False, True])
def test_follower_appends_nothing_newer_than_the_epoch_it_follows(takes_newer_epochs: bool) -> None:
    """A deposed leader's file was truncated and refilled while its answer was under way."""
    model = Model(1, Plan(refilled=1, late=0), takes_newer_epochs=takes_newer_epochs)
    first = model.nodes[model.partition.leader]
    other, slow = (node for node in model.nodes.values() if node is not first)
    for _ in range(2):
        model.produce()
    _exchange(model, slow)  # It has two records of the first epoch, which `other` never gets.
    model.produce()
    model.fetch_from(slow)
    model.step_wire()
    (late,) = model.wire
    model.wire.clear()
    for node in (first, slow):
        died = Died(NodeId(node.id), node.broker_epoch)
        model.deciding.ask(died, model.now)
        model.deciding.heartbeat(node.id, model.now)
    model.note()
    for node in (first, other):
        model.read_metadata(node, len(model.history) - 1)
    assert other.leader is not None
    for _ in range(4):
        model.values += 1
        other.log.append(other.leader.assignment.leader_epoch, model.values)
    model.perform(other, other.leader.appended(other.log.end_offset, model.now))
    for _ in range(4):
        _exchange(model, first)
    assert first.log.records == other.log.records
    model.deliver(late)
    if takes_newer_epochs:
        with pytest.raises(Violation, match="agree at one place"):
            model.check_prefixes()
    else:
        model.check_prefixes()


def _exchange(model: Model, follower: Node) -> None:
    model.fetch_from(follower)
    while model.wire:
        message = model.wire.pop(0)
        if isinstance(message, Fetch | Fetched):
            model.deliver(message)


def _name(item: tuple[str, Any]) -> str:
    argument, value = item
    return getattr(value, "__name__", argument)
