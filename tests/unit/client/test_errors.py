"""Failures say what a person can act on, and whether trying again may help."""

import pytest

from ottla.client.errors import MEANINGS, CannotConnect, NotServed, Refused, check
from ottla.model.errors import ErrorCode


def test_the_brokers_own_words_come_first() -> None:
    refused = Refused(ErrorCode.INVALID_CONFIG, "retention.ms must be a number", "topic 't'")
    assert str(refused) == "topic 't': retention.ms must be a number"


def test_a_code_without_words_gets_ours() -> None:
    assert str(Refused(ErrorCode.TOPIC_ALREADY_EXISTS)) == "the topic exists already"
    assert str(Refused(ErrorCode.ILLEGAL_SASL_STATE)) == "ILLEGAL_SASL_STATE"


def test_a_code_from_the_future_is_an_unknown_error() -> None:
    assert Refused(9999).code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_whether_trying_again_may_help_follows_from_the_code() -> None:
    assert Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER).is_retriable
    assert not Refused(ErrorCode.MESSAGE_TOO_LARGE).is_retriable
    assert CannotConnect("").is_retriable
    assert not NotServed("").is_retriable


def test_no_error_is_raised_for_none() -> None:
    check(0, "anything")
    with pytest.raises(Refused):
        check(3)


def test_sentences_neither_begin_nor_end_like_whole_ones() -> None:
    for meaning in MEANINGS.values():
        assert not meaning.endswith(".")
        assert meaning[0].islower()
