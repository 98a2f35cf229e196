"""Classes created by `@message`."""

from typing import ClassVar

import pytest

from ottla.protocol.schema import array, boolean, fields_of, int32, message, string, struct


@message
class Inner:
    value: int = int32(-1)


@message
class Outer:
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 1

    name: str | None = string(None, nullable=(1, 2))
    flag: bool = boolean(True, since=1, until=1)
    numbers: list[int] = array(int32)
    inners: list[Inner] | None = array(Inner, default=None, nullable=0)
    inner: Inner = struct(Inner)


def test_arguments_are_positional_in_schema_order_or_keywords() -> None:
    assert Outer("a", False, [1]) == Outer(numbers=[1], flag=False, name="a")


def test_every_field_has_a_default() -> None:
    outer = Outer()
    assert (outer.name, outer.flag, outer.numbers, outer.inners) == (None, True, [], None)
    assert outer.inner == Inner(-1)


def test_no_two_messages_share_a_list_or_a_struct() -> None:
    one, two = Outer(), Outer()
    one.numbers.append(1)
    one.inner.value = 5
    assert (two.numbers, two.inner.value) == ([], -1)


def test_unknown_arguments_are_refused() -> None:
    for _ in range(2):  # The first call compiles `__init__`, and must be as strict as the second.
        with pytest.raises(TypeError, match="nmae"):
            Inner(nmae=1)  # type: ignore[call-arg]


def test_a_misspelt_attribute_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Inner().valeu = 1  # type: ignore[attr-defined]


def test_equality_goes_by_class_and_values() -> None:
    assert Inner(1) == Inner(1)
    assert Inner(1) != Inner(2)
    others: list[object] = [Outer(), 1, None]
    assert all(Inner(1) != other for other in others)


def test_messages_are_mutable_and_so_have_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Inner())


def test_a_message_shows_its_fields() -> None:
    assert repr(Inner(7)) == "Inner(value=7)"


def test_a_message_can_be_matched_by_position() -> None:
    match Inner(7):
        case Inner(value):
            assert value == 7


def test_fields_know_their_versions() -> None:
    fields = {field.name: field for field in fields_of(Outer)}
    assert [fields["flag"].is_in(version) for version in range(3)] == [False, True, False]
    assert [fields["name"].is_nullable_in(version) for version in range(4)] == [
        False,
        True,
        True,
        False,
    ]
    assert not fields["numbers"].is_nullable_in(0)
