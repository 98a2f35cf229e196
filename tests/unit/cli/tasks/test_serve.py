"""The banner of a started broker."""

from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.cli.tasks.serve import banner


def test_the_banner_has_address_example_and_stop_key() -> None:
    lines = banner(Settings.load(zero_configuration("data")), "abc", {})
    assert "127.0.0.1:9092" in lines[0]
    assert "/data (cluster abc, node 1)" in lines[1]
    assert "ottla produce greetings" in lines[2]
    assert "ottla consume greetings" in lines[3]
    assert "Ctrl-C" in lines[4]


def test_the_banner_names_the_port_that_was_free() -> None:
    settings = Settings.load(zero_configuration("data", host="::1", port=0))
    lines = banner(settings, "abc", {"PLAINTEXT": 12345})
    assert "[::1]:12345" in lines[0]
    assert "-b [::1]:12345" in lines[2]
