"""Addresses as people write them."""

import pytest

from ottla.client.session import parse_addresses
from ottla.env.network import Address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:9092", [Address("localhost", 9092)]),
        ("a:1, b:2,", [Address("a", 1), Address("b", 2)]),
        ("broker.example", [Address("broker.example", 9092)]),
        ("[::1]:9093", [Address("::1", 9093)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_addresses_are_understood(text: str, expected: list[Address]) -> None:
    assert parse_addresses(text) == expected


@pytest.mark.parametrize("text", ["", " , ", "host:port", "host:0", "host:70000", ":9092"])
def test_what_is_no_address_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        parse_addresses(text)
