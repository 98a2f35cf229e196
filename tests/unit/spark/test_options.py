import pytest

from ottla.spark.errors import BadOption
from ottla.spark.options import Given

ADDRESS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_names_are_found_however_they_are_written() -> None:
    given = Given({"MAXoffsetsperTRIGGER": "5"})
    assert given.number("maxOffsetsPerTrigger") == 5
    given.finish()


@pytest.mark.parametrize(
    ("text", "size"),
    [("1048576", 2**20), ("512k", 2**19), ("256m", 2**28), ("1 GB", 2**30), ("2MiB", 2**21)],
)
def test_sizes_are_written_as_in_spark(text: str, size: int) -> None:
    assert Given({"a": text}).size("a") == size


@pytest.mark.parametrize(
    ("text", "ms"), [("250", 250), ("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("2h", 7.2e6)]
)
def test_durations_are_written_as_in_spark(text: str, ms: int) -> None:
    assert Given({"a": text}).duration_ms("a", 1) == ms


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("size", "0"),
        ("size", "much"),
        ("number", "0"),
        ("number", "1.5"),
        ("duration_ms", "soon"),
        ("json", "{"),
        ("json", "[1]"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(kind: str, text: str) -> None:
    arguments = (1,) if kind == "duration_ms" else ()
    with pytest.raises(BadOption, match="option 'some' is"):
        getattr(Given({"some": text}), kind)("some", *arguments)


def test_flags_and_choices() -> None:
    assert Given({"a": "TRUE"}).flag("a", False) is True
    assert Given({}).flag("a", True) is True
    assert Given({"a": "Latest"}).choice("a", ("latest", "error"), "error") == "latest"
    with pytest.raises(BadOption, match="it must be true or false"):
        Given({"a": "yes"}).flag("a", False)
    with pytest.raises(BadOption, match="it must be one of x, y"):
        Given({"a": "z"}).choice("a", ("x", "y"), "x")


def test_a_cluster_is_reached_by_addresses() -> None:
    access = Given({**ADDRESS, "kafka.client.id": "me"}).access()
    assert (access.bootstrap, access.client_id) == ("localhost:9092", "me")
    with pytest.raises(BadOption, match="give the addresses of brokers"):
        Given({}).access()
    with pytest.raises(BadOption, match="host:port expected"):
        Given({"kafka.bootstrap.servers": "host:port"}).access()


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    given = Given({"subscrib": "a"})
    given.text("subscribe")
    with pytest.raises(BadOption, match="no such option; did you mean 'subscribe'"):
        given.finish()


def test_a_connection_is_never_less_safe_than_asked_for() -> None:
    for protocol in ("SSL", "SASL_PLAINTEXT"):
        with pytest.raises(BadOption, match="only PLAINTEXT is spoken"):
            Given({**ADDRESS, "kafka.security.protocol": protocol}).access()
    given = Given({**ADDRESS, "kafka.security.protocol": "PLAINTEXT"})
    given.access()
    given.finish()
    with pytest.raises(BadOption, match="not be safe") as failure:
        Given({"kafka.ssl.truststore.password": "hidden"}).finish()
    assert "hidden" not in str(failure.value)


def test_options_without_effect_are_accepted() -> None:
    Given(
        {
            "kafka.max.poll.records": "10000",
            "groupIdPrefix": "x",
            "checkpointLocation": "/tmp/c",
            "fetchOffset.numRetries": "3",
        }
    ).finish()


def test_options_of_the_other_side_are_accepted() -> None:
    Given({"Topic": "orders"}).finish(("topic",))
