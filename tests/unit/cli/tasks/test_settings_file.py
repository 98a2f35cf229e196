"""Settings from a file and from the command line."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from ottla.broker.settings.error import SettingsError
from ottla.broker.settings.settings import zero_configuration
from ottla.cli.tasks.settings_file import add_settings_options, load_changed, load_file


def options(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    add_settings_options(parser)
    return parser.parse_args(arguments)


def write(path: Path, *lines: str) -> str:
    base = [f"{key}={value}" for key, value in zero_configuration("data").items()]
    path.write_text("\n".join([*base, *lines]))
    return str(path)


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "server.properties", "num.partitions=2", "num.io.threads=1")
    settings = load_file(file, options("--set", "num.partitions=3"))
    assert settings.num_partitions == 3
    assert settings.irrelevant == ["num.io.threads"]


def test_a_refusal_names_the_origin_of_the_setting(tmp_path: Path) -> None:
    file = write(tmp_path / "server.properties", "num.partitions=0")
    line = len(zero_configuration("data")) + 1
    with pytest.raises(SettingsError, match=rf"server\.properties line {line}\b"):
        load_file(file, options())
    with pytest.raises(SettingsError, match="--set"):
        load_file(file, options("--set", "num.partitions=-1"))


def test_unknown_keys_pass_only_when_asked(tmp_path: Path) -> None:
    file = write(tmp_path / "server.properties", "what.is.this=1")
    with pytest.raises(SettingsError, match=r"what\.is\.this"):
        load_file(file, options())
    assert load_file(file, options("--ignore-unknown")).num_partitions == 1


@pytest.mark.parametrize("change", ["num.partitions", "=1"])
def test_a_change_has_a_key_and_a_value(change: str) -> None:
    with pytest.raises(SettingsError, match="key=value"):
        load_changed(zero_configuration("data"), {}, options("--set", change))


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load_file(str(tmp_path / "none"), options())
    broken = tmp_path / "broken"
    broken.write_text("a=\\u12")
    with pytest.raises(SettingsError, match="line 1"):
        load_file(str(broken), options())
