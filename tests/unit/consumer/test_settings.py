"""Settings of a consumer and their checks."""

import pytest

from ottla.consumer.settings import (
    Backoff,
    Delivery,
    Settings,
    consumer_config,
    finish_s_max,
    producer_config,
)


def test_a_backoff_doubles_up_to_its_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.wait_s(failures, 0.0) for failures in (1, 2, 3, 4, 1000)] == [
        0.5,
        1.0,
        2.0,
        3.0,
        3.0,
    ]


def test_jitter_removes_up_to_half_of_a_wait() -> None:
    assert Backoff(1.0).wait_s(1, 1.0) == 0.5
    assert Backoff(1.0).wait_s(1, 0.5) == 0.75


@pytest.mark.parametrize("numbers", [(-1.0, 1.0, 2.0), (2.0, 1.0, 2.0), (1.0, 2.0, 0.5)])
def test_an_invalid_backoff_is_refused(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="a backoff needs"):
        Backoff(*numbers)


def test_dead_letters_go_to_the_topics_own_a_named_or_no_topic() -> None:
    assert Settings("g").dead_letter_topic("orders") == "orders.dlq"
    assert Settings("g", dead_letters="graves").dead_letter_topic("orders") == "graves"
    assert Settings("g", dead_letters=False).dead_letter_topic("orders") is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"group": ""}, "name of a group"),
        ({"group": "g", "retries": -1}, "negative"),
        ({"group": "g", "workers": 0}, "one worker"),
    ],
)
def test_invalid_settings_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings(**options)  # type: ignore[arg-type]


def test_delivery_is_one_word() -> None:
    assert Settings("g", Delivery("at-most-once")).is_at_most_once
    assert not Settings("g").is_at_most_once


def test_config_names_may_be_written_with_underscores() -> None:
    def told(_error: object) -> None:
        pass

    config = consumer_config(
        "b:1", "g", {"session_timeout_ms": 6000, "client.id": "me", "error_cb": told}
    )
    assert config["session.timeout.ms"] == 6000
    assert config["client.id"] == "me"
    assert config["error_cb"] is told
    assert config["enable.auto.commit"] is False
    assert config["auto.offset.reset"] == "earliest"


def test_a_user_decides_where_a_new_group_begins() -> None:
    config = consumer_config("b:1", "g", {"auto_offset_reset": "latest"})
    assert config["auto.offset.reset"] == "latest"


@pytest.mark.parametrize("name", ["enable_auto_commit", "group.id", "bootstrap.servers"])
def test_configs_managed_by_the_library_cannot_be_set(name: str) -> None:
    with pytest.raises(ValueError, match="not yours to set"):
        consumer_config("b:1", "g", {name: "x"})


def test_the_producer_of_dead_letters_connects_as_the_consumer_does() -> None:
    config = consumer_config("b:1", "g", {"sasl.username": "me", "session.timeout.ms": 1})
    shared = producer_config(config)
    assert shared["bootstrap.servers"] == "b:1"
    assert shared["sasl.username"] == "me"
    assert "session.timeout.ms" not in shared
    assert "group.id" not in shared


def test_a_rebalance_waits_at_most_half_of_max_poll_interval() -> None:
    assert finish_s_max(Settings("g", finish_s=30), {}) == 30
    assert finish_s_max(Settings("g", finish_s=30), {"max.poll.interval.ms": 10_000}) == 5
