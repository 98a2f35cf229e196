"""Keys and their last offsets, in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.offset_map import ENTRY_BYTES, OffsetMap


@given(st.lists(st.binary(max_size=4), max_size=300))
def test_it_is_a_dictionary(keys: list[bytes]) -> None:
    offsets = OffsetMap(10**6, 0.9, 300)
    model: dict[bytes, int] = {}
    for offset, key in enumerate(keys):
        assert offsets.put(key, offset)
        model[key] = offset
    assert len(offsets) == len(model)
    assert {key: offsets.latest(key) for key in model} == model
    assert offsets.latest(b"never written") == -1


def test_it_is_full_at_its_load_factor() -> None:
    offsets = OffsetMap(100 * ENTRY_BYTES, 0.75, 10**9)
    count = 0
    while offsets.put(b"%d" % count, count):
        count += 1
    assert count == 75
    assert offsets.put(b"3", 3), "a key that is there already always has room"
    assert all(offsets.latest(b"%d" % n) == n for n in range(count))
    assert offsets.latest(b"75") == -1


def test_it_is_no_larger_than_the_keys_that_may_come() -> None:
    offsets = OffsetMap(10**9, 0.5, 1000)
    assert offsets.size_bytes < 2100 * ENTRY_BYTES
    assert all(offsets.put(b"%d" % n, n) for n in range(1000))


def test_a_table_without_a_free_slot_is_never_made() -> None:
    offsets = OffsetMap(0, 1.0, 0)
    while offsets.put(b"%d" % len(offsets), 1):
        pass
    assert offsets.latest(b"nobody") == -1
