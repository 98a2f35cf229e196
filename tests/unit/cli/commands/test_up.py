"""`ottla up` as far as it goes without a broker; tests/process starts them."""

import pytest

from ottla.broker.settings.error import SettingsError
from ottla.cli.commands.up import main


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--set", "num.partitons=1"], "num.partitions"),
        (["--set", "ssl.keystore.location=x"], "not built"),
        (["--port", "70000"], "host:port"),
        (["--host", "0.0.0.0"], "advertised.listeners"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_touched(
    arguments: list[str], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        main(["--data", "/proc/never/made", *arguments])
