from itertools import count

from ottla.metadata.image.ids import new_uuid
from ottla.model.types import uuid_text


def test_an_id_is_random_of_version_four() -> None:
    drawn = new_uuid(lambda size: bytes([0xFF] * size))
    assert drawn[6] >> 4 == 4
    assert drawn[8] >> 6 == 2


def test_no_id_begins_with_a_dash() -> None:
    draws = count(62 << 2)
    drawn = new_uuid(lambda size: bytes([next(draws) % 256] * size))
    assert not uuid_text(drawn).startswith("-")
