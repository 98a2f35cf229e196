"""`ottla configs`: what is refused, and how changes are put together."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.cli.commands.configs import Kind, _changes, _resource
from ottla.cli.tasks.client_options import Misuse
from ottla.client.admin import Operation, ResourceType
from ottla.testing import Broker


def test_options_become_operations() -> None:
    assert _changes(["a=1"], ["b"], ["c=2"], ["d=3"]) == [
        (Operation.SET, "a", "1"),
        (Operation.APPEND, "c", "2"),
        (Operation.SUBTRACT, "d", "3"),
        (Operation.DELETE, "b", None),
    ]


def test_a_broker_has_a_number_and_all_of_them_have_none() -> None:
    assert _resource(Kind.TOPIC, "t") == (ResourceType.TOPIC, "t")
    assert _resource(Kind.GROUP, "default") == (ResourceType.GROUP, "default")
    assert _resource(Kind.BROKER, "3") == (ResourceType.BROKER, "3")
    assert _resource(Kind.BROKER, "default") == (ResourceType.BROKER, "")
    with pytest.raises(Misuse, match="'one' is no broker"):
        _resource(Kind.BROKER, "one")


def test_nothing_to_change_is_refused() -> None:
    answer = CliRunner().invoke(app, ["configs", "alter", "topic", "t"])
    assert answer.exit_code == 2
    assert "nothing to change" in answer.stderr


@pytest.mark.parametrize(
    ("kind", "key", "value", "has_effect"),
    [
        ("broker", "num.io.threads", "9", False),
        ("broker", "log.retention.ms", "3600000", True),
        ("topic", "local.retention.ms", "5000", False),
        ("topic", "retention.ms", "86400000", True),
    ],
)
def test_a_config_without_effect_is_named_when_it_is_altered(
    ottla_broker_session: Broker, kind: str, key: str, value: str, has_effect: bool
) -> None:
    name = "default" if kind == "broker" else ottla_broker_session.create_topic(f"of-{key}")
    arguments = ["configs", "alter", kind, name, "--set", f"{key}={value}"]
    answer = CliRunner().invoke(app, [*arguments, "-b", ottla_broker_session.bootstrap_servers])
    assert answer.exit_code == 0, answer.stderr
    told = f"{key} has no effect in Ottla"
    assert (told not in answer.stderr + answer.stdout) is has_effect
