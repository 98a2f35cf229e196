"""The errors of a tail: one root; only some are transient."""

from ottla.cdc.errors import BadMessage, CdcError, Interrupted, NotPossible


def test_every_error_is_caught_by_the_root_and_only_one_may_pass_by_itself() -> None:
    assert all(issubclass(kind, CdcError) for kind in (BadMessage, Interrupted, NotPossible))
    assert not issubclass(NotPossible, Interrupted)
    assert not issubclass(BadMessage, Interrupted)
