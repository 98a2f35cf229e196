"""Default settings of a tail."""

from ottla.cdc.settings import TailSettings


def test_only_the_database_has_to_be_named() -> None:
    settings = TailSettings("dbname=shop")
    assert (settings.slot, settings.publication, settings.prefix) == ("ottla", "ottla", None)
    assert not settings.is_resync, "what was written is not compared unless that is asked for"
    assert not settings.stops_at_end
