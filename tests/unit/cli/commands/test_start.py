"""`ottla start` as far as it goes without a broker; tests/process starts them."""

import pytest

from ottla.broker.settings.error import SettingsError
from ottla.cli.commands.start import main


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match="No such file"):
        main(["no/such/server.properties"])


def test_a_file_must_be_named() -> None:
    with pytest.raises(SystemExit):
        main([])
