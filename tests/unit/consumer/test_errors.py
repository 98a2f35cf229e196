"""What ends a consumer can be caught as one kind; what a handler raises is none of it."""

import pytest

from ottla.consumer import errors


@pytest.mark.parametrize(
    "kind", [errors.CannotConsume, errors.HandlerFailed, errors.CannotDeadLetter]
)
def test_whatever_ends_a_consumer_has_one_root(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.ConsumerError)


def test_a_rejected_record_does_not_end_it() -> None:
    assert not issubclass(errors.Reject, errors.ConsumerError)
