"""The sentence of a refused setting."""

import pytest

from ottla.broker.settings.error import SettingsError, refuse


def test_a_refusal_is_one_sentence_with_key_value_and_place() -> None:
    with pytest.raises(SettingsError) as caught:
        refuse("a.b", "1", "must be at least 2", {"a.b": "--set"})
    assert str(caught.value) == "a.b=1 (--set) must be at least 2."


def test_a_question_keeps_its_mark_and_a_secret_stays_out() -> None:
    with pytest.raises(SettingsError) as caught:
        refuse("a.b", None, "is unknown; did you mean a.c?", {})
    assert str(caught.value) == "a.b is unknown; did you mean a.c?"
