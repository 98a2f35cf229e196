"""The file of profiles."""

import stat
import tomllib

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.profiles import Profiles, profiles_file


def write(text: str) -> None:
    profiles_file().parent.mkdir(parents=True, exist_ok=True)
    profiles_file().write_text(text)


def test_what_is_saved_is_loaded_again() -> None:
    profiles = Profiles.load().with_profile("a", "x:1,y:2").with_profile("b-2", "[::1]:9092")
    profiles.using("b-2").save()
    again = Profiles.load()
    assert again.named == {
        "a": {"bootstrap.servers": "x:1,y:2"},
        "b-2": {"bootstrap.servers": "[::1]:9092"},
    }
    assert again.in_use == "b-2"
    assert again.without("b-2").in_use is None
    assert tomllib.loads(profiles_file().read_text())["use"] == "b-2"
    assert stat.S_IMODE(profiles_file().stat().st_mode) == 0o600


def test_the_first_profile_is_in_use_at_once() -> None:
    profiles = Profiles.load().with_profile("a", "x:1").with_profile("b", "y:1")
    assert profiles.in_use == "a"


@pytest.mark.parametrize("key", ["sasl.password", "security.protocol", "bootstrap_servers"])
def test_a_key_without_effect_is_refused(key: str) -> None:
    write(f'[profiles.a]\n"bootstrap.servers" = "x:1"\n"{key}" = "y"\n')
    with pytest.raises(Misuse, match="has no effect, so it is refused"):
        Profiles.load()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("use = 3\n", "expected 'use' and tables"),
        ("other = 3\n", "expected 'use' and tables"),
        ("[profiles.a]\n", "lacks"),
        ("[profiles]\na = 1\n", "lacks"),
        ("use =", "profiles.toml"),
    ],
)
def test_a_bad_file_is_named(text: str, sentence: str) -> None:
    write(text)
    with pytest.raises(Misuse, match=sentence):
        Profiles.load()


@pytest.mark.parametrize(("name", "servers"), [("a b", "x:1"), ("a.b", "x:1"), ("a", "x:y")])
def test_bad_names_and_addresses_are_refused(name: str, servers: str) -> None:
    with pytest.raises(Misuse):
        Profiles.load().with_profile(name, servers)
