from random import Random

from ottla.model.errors import Refusal
from ottla.model.types import WallTime
from ottla.records.admission import Admission, AdmissionPolicy, admit
from ottla.records.batch import Batch
from ottla.records.scan import ScanBudget
from ottla.simulation.clients.hostile_batches import honest_batch, hostile_batch

NOW = WallTime(1_700_000_000_000)
TURN_US = 10_000


def outcome(data: bytes, policy: AdmissionPolicy) -> str:
    try:
        admitted = admit(bytearray(data), policy, NOW, 9, ScanBudget(TURN_US))
    except Refusal as refusal:
        return refusal.code.name
    return type(admitted).__name__


def test_the_same_seed_makes_the_same_batches() -> None:
    batches = [hostile_batch(Random(seed), NOW) for seed in range(100)]
    assert batches == [hostile_batch(Random(seed), NOW) for seed in range(100)]


def test_honest_batches_are_admitted() -> None:
    for seed in range(30):
        data = honest_batch(Random(seed), NOW)
        assert outcome(data, AdmissionPolicy(is_compacted=True)) == Batch.__name__


def test_hostile_batches_meet_every_answer() -> None:
    outcomes = {
        outcome(hostile_batch(Random(seed), NOW), policy)
        for seed in range(500)
        for policy in (AdmissionPolicy(), AdmissionPolicy(is_compacted=True))
    }
    assert outcomes == {
        Batch.__name__,
        Admission.__name__,
        "CORRUPT_MESSAGE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "MESSAGE_TOO_LARGE",
        "UNSUPPORTED_COMPRESSION_TYPE",
    }
