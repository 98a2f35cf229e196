"""Errors that end a consumer have one root, apart from those that a handler raises."""

import pytest

from ottla.consumer import errors


@pytest.mark.parametrize(
    "kind", [errors.CannotConsume, errors.HandlerFailed, errors.CannotDeadLetter]
)
def test_errors_that_end_a_consumer_have_one_root(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.ConsumerError)


def test_reject_is_not_a_consumer_error() -> None:
    assert not issubclass(errors.Reject, errors.ConsumerError)
