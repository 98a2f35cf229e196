"""A topic's rows on disk: the last record of a key wins."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.cdc.known_rows import KnownRows

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.sampled_from([b"1", b"2", b""])


@given(st.lists(st.tuples(KEYS, st.none() | VALUES)), st.dictionaries(KEYS, VALUES))
def test_known_rows_find_differences_to_the_table(
    records: list[tuple[bytes, bytes | None]], table: dict[bytes, bytes]
) -> None:
    known = KnownRows()
    topic: dict[bytes, bytes] = {}
    for key, value in records:
        known.learn(key, value)
        topic.pop(key, None)
        if value is not None:
            topic[key] = value
    for key, value in table.items():
        assert known.see(key, value) == (topic.get(key) == value)
    assert list(known.unseen()) == sorted(topic.keys() - table.keys())
    known.close()
