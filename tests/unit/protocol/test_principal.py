import pytest

from ottla.model.errors import ProtocolError
from ottla.model.principal import ANONYMOUS, Principal
from ottla.protocol.principal import decode_principal, encode_principal


def test_principal_has_the_bytes_of_kafkas_default_builder() -> None:
    assert encode_principal(ANONYMOUS) == b"\0\0\x05User\x0aANONYMOUS\0\0"


@pytest.mark.parametrize("name", ["alice", "", "CN=ä,O=x", "x" * 300])
def test_principal_is_decoded_as_it_was_encoded(name: str) -> None:
    principal = Principal("User", name)
    assert decode_principal(encode_principal(principal)) == principal


@pytest.mark.parametrize(
    "data", [None, b"", b"\0", b"\0\1\x05User\1\0\0", b"\0\0\x05Us", b"\0\0\0"]
)
def test_bytes_that_are_no_principal_are_refused(data: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode_principal(data)
