from ottla.model.principal import ANONYMOUS, Principal


def test_principal_is_shown_as_kafka_shows_it() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert str(Principal("User", "alice")) == "User:alice"
