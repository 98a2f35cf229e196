import pytest

from ottla.metadata.image.topic_names import can_collide, fault_of, unified


@pytest.mark.parametrize("name", ["a", "A-Z_0.9", "x" * 249, "__consumer_offsets", "..."])
def test_a_legal_name_has_no_fault(name: str) -> None:
    assert fault_of(name) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a/b", "characters other than ASCII alphanumerics"),
        ("a\n", "characters other than ASCII alphanumerics"),
        ("a\0", "characters other than ASCII alphanumerics"),
        ("é", "characters other than ASCII alphanumerics"),
        ("x" * 250, "longer than the max allowed length 249"),
    ],
)
def test_a_name_that_kafka_refuses_has_its_reason(name: str, fault: str) -> None:
    assert fault in (fault_of(name) or "")


def test_names_that_metrics_would_confuse_are_the_same_when_unified() -> None:
    assert can_collide("a.b")
    assert can_collide("a_b")
    assert not can_collide("ab")
    assert unified("a.b") == unified("a_b")
