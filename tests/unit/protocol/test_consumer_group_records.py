"""The records of consumer groups: keys and values match, and round-trip."""

from typing import Any

import pytest
from hypothesis import given

from ottla.protocol.codec import decode, encode
from ottla.protocol.consumer_group_records import VALUES
from tests.unit.protocol.strategies import SETTINGS, messages


def test_a_key_and_its_value_bear_the_same_type() -> None:
    for key, value in VALUES.items():
        assert key.API_KEY == value.API_KEY  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", VALUES.values(), ids=lambda cls: cls.__name__)
def test_every_value_round_trips(cls: Any) -> None:  # noqa: ANN401
    @SETTINGS
    @given(value=messages(cls))
    def check(value: Any) -> None:  # noqa: ANN401
        assert decode(cls, encode(value, 0), 0) == value

    check()
