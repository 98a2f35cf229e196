"""`ottla format` on real directories."""

from pathlib import Path

import pytest

from ottla.broker.settings.error import SettingsError
from ottla.broker.settings.settings import zero_configuration
from ottla.cli.commands.format import main

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
DIRECTORY_ID = "8XQPYSFxTS6l9eYR2oH1sA"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    properties = zero_configuration(str(tmp_path / "data"))
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


def meta(file: Path) -> str:
    return (file.parent / "data" / "meta.properties").read_text()


def test_a_standalone_node_is_formatted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["-t", CLUSTER, "-c", str(file), "--standalone"])
    assert f"cluster.id={CLUSTER}" in meta(file)
    assert "Formatting" in capsys.readouterr().out


def test_an_initial_controller_takes_the_directory_id_it_was_given(file: Path) -> None:
    voters = f"1@127.0.0.1:9093:{DIRECTORY_ID}"
    main(["-t", CLUSTER, "-c", str(file), "--initial-controllers", voters])
    assert f"directory.id={DIRECTORY_ID}" in meta(file)


def test_a_formatted_directory_is_left_alone(file: Path) -> None:
    arguments = ["-t", CLUSTER, "-c", str(file), "--standalone"]
    main(arguments)
    before = meta(file)
    with pytest.raises(SettingsError, match="already formatted"):
        main(arguments)
    main([*arguments, "--ignore-formatted"])
    assert meta(file) == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "say who votes"),
        (["--set", "controller.quorum.voters=1@127.0.0.1:9093", "--standalone"], "no place"),
        (["--standalone", "--feature", "group.version"], "name=level"),
        (["--standalone", "--feature", "nothing.version=1"], "Unsupported feature"),
        (["--standalone", "--release-version", "9.9"], "Unknown metadata.version"),
        (["--initial-controllers", "1@x"], "not a controller"),
    ],
)
def test_a_failed_format_prints_a_sentence(file: Path, arguments: list[str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        main(["-t", CLUSTER, "-c", str(file), *arguments])


def test_static_voters_need_no_flag(file: Path) -> None:
    voters = "controller.quorum.voters=1@127.0.0.1:9093"
    main(["-t", CLUSTER, "-c", str(file), "--set", voters])
    assert not (file.parent / "data" / "__cluster_metadata-0").exists()


def test_a_directory_that_cannot_be_made_is_a_sentence(file: Path) -> None:
    (file.parent / "data").write_text("a file")
    with pytest.raises(SettingsError, match="data"):
        main(["-t", CLUSTER, "-c", str(file), "--standalone"])
