"""The one error of settings: a sentence that says which key, what is wrong and where it was set."""

from collections.abc import Mapping
from typing import NoReturn


class SettingsError(Exception):
    """A setting that cannot be used; the text is a whole sentence for the person who set it."""


def refuse(key: str, value: str | None, problem: str, origins: Mapping[str, str]) -> NoReturn:
    """Raise for `key`; `value` is left out where it is secret or does not matter."""
    subject = key if value is None else f"{key}={value}"
    origin = f" ({origins[key]})" if key in origins else ""
    sentence = f"{subject}{origin} {problem}"
    raise SettingsError(sentence if sentence.endswith(("?", ".")) else f"{sentence}.")
