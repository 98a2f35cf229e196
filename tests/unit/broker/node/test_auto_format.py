"""Whether a node may make its own directories ready."""

import os
from pathlib import Path

import pytest

from ottla.broker.node.auto_format import format_for, is_alone, prepare_start, prepare_up
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.client.blocking import Client
from ottla.env.disk import real_disk
from ottla.model.errors import FormatRefused
from ottla.model.types import WallTime
from ottla.storage.identity import read_meta
from ottla.testing import Broker

NOW = WallTime(1_700_000_000_000)


def settings(*directories: Path, **more: str) -> Settings:
    changes = {key.replace("_", "."): value for key, value in more.items()}
    data = ",".join(map(str, directories)) or "data"
    return Settings.load({**zero_configuration(data), **changes})


def cluster_of(directory: Path) -> str | None:
    meta = read_meta(real_disk(), str(directory))
    return meta.cluster_id if meta else None


def up(mine: Settings) -> list[str]:
    return prepare_up(real_disk(), mine, NOW, os.urandom)


def start(mine: Settings) -> list[str]:
    return prepare_start(real_disk(), mine, NOW, os.urandom, file="server.properties")


def test_up_formats_what_is_empty_once(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    assert len(up(settings(one, two))) == 2
    assert cluster_of(one) == cluster_of(two) is not None
    assert up(settings(one, two)) == []


def test_up_gives_a_new_directory_to_the_cluster_of_the_others(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    up(settings(one))
    up(settings(one, two))
    assert cluster_of(two) == cluster_of(one)


def test_up_never_forgets_where_the_metadata_was(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    up(settings(one))
    with pytest.raises(FormatRefused, match="mount the right disk"):
        up(settings(two, one))


def test_a_foreign_directory_is_left_for_the_opening_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "file").write_text("mine")
    assert up(settings(tmp_path / "1")) == []
    assert up(settings(tmp_path / "1", tmp_path / "2")) == []


def test_start_formats_only_where_everything_is_empty(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    assert len(start(settings(one))) == 1
    assert start(settings(one)) == []
    with pytest.raises(FormatRefused) as refused:
        start(settings(one, two))
    command = f"ottla format -t {cluster_of(one)} -c server.properties --standalone"
    assert f"{command} --ignore-formatted" in str(refused.value)
    assert str(two) in str(refused.value)


def test_start_leaves_the_directories_of_a_larger_cluster_to_a_person(tmp_path: Path) -> None:
    mine = settings(tmp_path / "1", controller_quorum_bootstrap_servers="127.0.0.1:1")
    with pytest.raises(FormatRefused, match="ottla format -t CLUSTER_ID") as refused:
        start(mine)
    assert "--standalone" not in str(refused.value)
    assert cluster_of(tmp_path / "1") is None


def test_start_names_the_cluster_that_its_controllers_belong_to(tmp_path: Path) -> None:
    with Broker() as broker:
        with Client(broker.bootstrap_servers) as client:
            cluster_id = client.run(client.admin.describe_cluster()).cluster_id
        servers = broker.bootstrap_servers
        mine = settings(tmp_path / "1", controller_quorum_bootstrap_servers=servers)
        with pytest.raises(FormatRefused) as refused:
            start(mine)
    command = f"ottla format -t {cluster_id} -c server.properties --no-initial-controllers"
    assert command in str(refused.value)


@pytest.mark.parametrize(
    ("more", "alone"),
    [
        ({}, True),
        ({"controller_quorum_bootstrap_servers": "localhost:9093"}, True),
        ({"controller_quorum_bootstrap_servers": "127.0.0.1:9093"}, True),
        ({"controller_quorum_bootstrap_servers": "localhost:9094"}, False),
        ({"controller_quorum_bootstrap_servers": "a:9093,b:9093"}, False),
        ({"controller_quorum_voters": "1@a:9093"}, True),
    ],
)
def test_a_node_is_alone_unless_its_settings_point_elsewhere(
    more: dict[str, str], alone: bool
) -> None:
    assert is_alone(settings(**more)) is alone


def test_static_voters_are_not_written_down() -> None:
    static = format_for(settings(controller_quorum_voters="1@a:9093"), "abc")
    assert (static.standalone_at, static.is_dynamic) == (None, False)
    dynamic = format_for(settings(), "abc")
    assert dynamic.standalone_at is not None
    assert dynamic.standalone_at["CONTROLLER"] == ("127.0.0.1", 9093)
