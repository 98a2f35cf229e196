"""Records about security share the frame of the metadata log and keep secrets byte for byte."""

from ottla.protocol import security_records
from ottla.protocol.metadata_records import decode_record, encode_record
from ottla.protocol.security_records import UserScramCredentialRecord
from tests.unit.protocol.strategies import module_classes


def test_a_scram_credential_with_arbitrary_bytes_round_trips() -> None:
    record = UserScramCredentialRecord("me", 1, b"\0\xff", bytes(range(256)), b"\x80", 4096)
    assert decode_record(encode_record(record, 0)) == record


def test_every_record_of_security_is_one_of_the_metadata_log() -> None:
    for cls in module_classes(security_records).values():
        assert decode_record(encode_record(cls(), 0)) == cls()
