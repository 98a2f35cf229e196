"""Many small worlds, each from a seed; and mistakes that they must find."""

from typing import Any

import pytest

from tests.unit.replication import mutants
from tests.unit.replication.modelling import Model, Violation

SEEDS = 150
STEPS = 400


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_nothing_that_was_acknowledged_is_lost(first: int) -> None:
    acked = 0
    for seed in range(first, first + 25):
        model = Model(seed)
        model.run(STEPS)
        model.heal()
        acked += len(model.acked)
    assert acked > 25 * 5  # The worlds are not so bad that nothing happens in them.


@pytest.mark.parametrize(
    ("mistake", "seeds_max"),
    [
        ({"acks_early": True}, 20),
        ({"leader": mutants.CountsOnlyItself}, 20),
        ({"leader": mutants.LetsJoinTooEarly}, 20),
        ({"leader": mutants.ForgetsWhatItProposed}, 100),
        ({"leader": mutants.ForgetsBrokerEpochs}, 200),
        ({"leader": mutants.CommitsWhatTooFewHold}, 20),
        ({"follower": mutants.ForgetsToTruncate}, 30),
    ],
)
def test_a_mistake_is_found(mistake: dict[str, Any], seeds_max: int) -> None:
    for seed in range(seeds_max):
        model = Model(seed, **mistake)
        try:
            model.run(STEPS)
        except Violation:
            return
    pytest.fail(f"not found in {seeds_max} seeds")
