"""Addresses as settings write them."""

import pytest

from ottla.broker.settings.endpoints import (
    Endpoint,
    HostPort,
    Voter,
    parse_endpoints,
    parse_host_port,
    parse_limits,
    parse_protocol_map,
    parse_voters,
)
from ottla.model.types import NodeId

PLAIN = {"PLAINTEXT": "PLAINTEXT", "INSIDE": "PLAINTEXT", "SSL": "SSL"}


@pytest.mark.parametrize("text", ["localhost:9092", "[::1]:0", "10.0.0.1:65535"])
def test_an_address_is_read_and_printed_alike(text: str) -> None:
    assert str(parse_host_port(text)) == text


@pytest.mark.parametrize(
    "text", ["localhost", "::1:9092", "a:b", "a:-1", "a:65536", ":9092", "a:\u0661", ""]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|brackets"):
        parse_host_port(text)


def test_listeners_have_names_protocols_and_hosts() -> None:
    assert parse_endpoints(["plaintext://:9092", "SSL://[::1]:9093"], PLAIN) == [
        Endpoint("PLAINTEXT", "", 9092),
        Endpoint("SSL", "::1", 9093, "SSL"),
    ]
    assert str(Endpoint("SSL", "::1", 9093)) == "SSL://[::1]:9093"


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (["9092"], "NAME://host:port"),
        (["OTHER://h:1"], "listener.security.protocol.map"),
        (["INSIDE://h:1", "inside://h:2"], "twice"),
    ],
)
def test_a_wrong_listener_says_what_is_wrong(items: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_endpoints(items, PLAIN)


def test_voters_have_ids_and_addresses() -> None:
    assert parse_voters(["1@a:9093", "2@[::1]:9094"]) == [
        Voter(NodeId(1), "a", 9093),
        Voter(NodeId(2), "::1", 9094),
    ]
    for wrong in (["a:9093"], ["x@a:1"], ["1@a:1", "1@b:1"]):
        with pytest.raises(ValueError, match=r"id"):
            parse_voters(wrong)


def test_a_protocol_map_is_read_in_upper_case() -> None:
    assert parse_protocol_map(["inside:plaintext", "X:sasl_ssl"]) == {
        "INSIDE": "PLAINTEXT",
        "X": "SASL_SSL",
    }
    with pytest.raises(ValueError, match="NAME:PROTOCOL"):
        parse_protocol_map(["X:TELNET"])


def test_limits_by_address_take_ipv6_too() -> None:
    assert parse_limits("a:1, [::1]:2") == {"a": 1, "::1": 2}
    assert parse_limits("") == {}
    with pytest.raises(ValueError, match="host:limit"):
        parse_limits("a")
    assert str(HostPort("a", 1)) == "a:1"
