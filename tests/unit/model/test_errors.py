"""Kafka's error codes and the exceptions."""

import pytest
from kio.schema import errors as kio

from ottla.model.errors import RETRIABLE, Damaged, ErrorCode, ProtocolError, Refusal


def test_codes_are_numbered_without_a_gap() -> None:
    numbers = sorted(ErrorCode)
    assert numbers == list(range(-1, numbers[-1] + 1))
    assert (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE) == (-1, 0)


def test_codes_are_those_of_another_implementation() -> None:
    theirs = {error.value: (error.name.upper(), error.retriable) for error in kio.ErrorCode}
    ours = {int(code): (code.name, code in RETRIABLE) for code in ErrorCode}
    assert ours == theirs


def test_a_refusal_has_a_code_and_perhaps_a_sentence() -> None:
    refusal = Refusal(ErrorCode.INVALID_CONFIG, "no such config")
    assert (refusal.code, refusal.message) == (38 + 2, "no such config")
    assert str(refusal) == "INVALID_CONFIG: no such config"
    assert str(Refusal(ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER"


def test_a_refusals_message_fits_an_answer_however_long_the_name_in_it_is() -> None:
    name = "\U0001f600" * 30_000
    refusal = Refusal(ErrorCode.INVALID_REQUEST, f"There is no {name} here.")
    assert len((refusal.message or "").encode()) < 32_767
    assert (refusal.message or "").startswith("There is no \U0001f600")
    assert (refusal.message or "").endswith("\U0001f600 here.")


def test_damage_names_file_and_position() -> None:
    damage = Damaged("/data/t-0/0.log", 61, "its checksum is wrong")
    assert str(damage) == "/data/t-0/0.log is damaged at byte 61: its checksum is wrong"
    assert (damage.path, damage.position, damage.what) == (
        "/data/t-0/0.log",
        61,
        "its checksum is wrong",
    )


def test_refusals_are_answered_and_protocol_errors_are_not() -> None:
    assert not issubclass(ProtocolError, Refusal)
    with pytest.raises(ProtocolError):
        raise ProtocolError("garbage")
