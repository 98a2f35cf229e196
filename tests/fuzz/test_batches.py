"""Hostile batches through everything that looks inside one: nothing unexpected comes out.

Runs from the seed OTTLA_FUZZ_SEED (random unless set). What is done at once within the budget of a
loop turn takes less than the 50 ms that the bytes of a peer may take of the loop.
"""

import os
import random
from time import thread_time
from typing import Final

import pytest

from ottla.model.errors import Refusal
from ottla.model.types import WallTime
from ottla.records.admission import Admission, AdmissionPolicy, admit
from ottla.records.batch import Batch
from ottla.records.cleaning import CleaningRules, Verdict, clean_batch, keys_of
from ottla.records.key_fold import fold
from ottla.records.record import BadRecords, read_records
from ottla.records.scan import ScanBudget
from ottla.simulation.clients.hostile_batches import hostile_batch
from ottla.storage.lookup import FirstAt
from ottla.storage.offset_map import OffsetMap

SEED: Final = int(os.environ.get("OTTLA_FUZZ_SEED", str(random.SystemRandom().getrandbits(32))))
BATCHES: Final = 250
NOW: Final = WallTime(1_700_000_000_000)
BYTES_MAX: Final = 8 << 20
TURN_US: Final = 10_000
TURN_SECONDS_MAX: Final = 0.05
POLICIES: Final = {
    "plain": AdmissionPolicy(decompressed_bytes_max=BYTES_MAX),
    "append time": AdmissionPolicy(timestamp_type="LogAppendTime"),
    "compacted": AdmissionPolicy(is_compacted=True, decompressed_bytes_max=BYTES_MAX),
    "compacted append time": AdmissionPolicy(
        is_compacted=True, timestamp_type="LogAppendTime", decompressed_bytes_max=BYTES_MAX
    ),
    "any time": AdmissionPolicy(
        is_compacted=True, timestamp_after_ms_max=2**63 - 1, decompressed_bytes_max=BYTES_MAX
    ),
    "full": AdmissionPolicy(full_validation=True, decompressed_bytes_max=BYTES_MAX),
    "gzip": AdmissionPolicy(compression_type="gzip", decompressed_bytes_max=BYTES_MAX),
    "snappy": AdmissionPolicy(compression_type="snappy", decompressed_bytes_max=BYTES_MAX),
    "lz4": AdmissionPolicy(
        compression_type="lz4", timestamp_type="LogAppendTime", decompressed_bytes_max=BYTES_MAX
    ),
    "zstd": AdmissionPolicy(compression_type="zstd", decompressed_bytes_max=BYTES_MAX),
}


@pytest.mark.parametrize("name", POLICIES)
def test_hostile_batches_are_admitted_or_refused_within_a_turn(name: str) -> None:
    rng, policy, slowest, costly = random.Random(f"{SEED}/{name}"), POLICIES[name], 0.0, 0
    for number in range(BATCHES):
        data = bytearray(hostile_batch(rng, NOW))
        begun = thread_time()
        try:
            batch = admit(data, policy, NOW, rng.choice((3, 8, 9, 12)), ScanBudget(TURN_US))
        except Refusal:
            continue
        finally:
            slowest = max(slowest, thread_time() - begun)
        if isinstance(batch, Admission):
            costly += 1
            if costly > 5:
                continue  # They are alike, and take their time.
            try:
                for _ in batch.steps():
                    pass
            except Refusal:
                continue
            batch = batch.batch
        assert batch.is_valid, f"seed {SEED}, {name}, batch {number}"
        read_everything(batch, is_sound=policy.is_compacted)
    assert slowest < TURN_SECONDS_MAX, f"seed {SEED}"


def read_everything(batch: Batch, *, is_sound: bool) -> None:
    """As consumers, searches, the cleaner and coordinators read it, whenever that is."""
    if batch.count > 10_000:
        return
    batch.assign(2**62, 5)
    FirstAt(batch, BYTES_MAX, timestamp=NOW, start=0).run_within(ScanBudget(TURN_US))
    fold(bytes(batch.data), (b"k",))
    try:
        list(read_records(batch, BYTES_MAX))
        offsets = OffsetMap(1 << 20, 0.9, 10_000)
        for offset, key in keys_of(batch, BYTES_MAX):
            offsets.put(key, offset)
        offsets.end_offset = batch.next_offset
        cleaned = clean_batch(batch, offsets, Verdict(), CleaningRules(NOW, 1000, BYTES_MAX))
        assert cleaned is None or Batch(cleaned).is_valid
    except BadRecords:
        assert not is_sound, f"seed {SEED}: {batch}"
